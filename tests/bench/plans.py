"""A plan of two methods on tiny data, without noise and with some."""

PLAN = """
data = ["tiny.npz"]
noises = ["none", "mislabel:0.3"]
seeds = [0]
[settings.train]
epochs = 4
batch_size = 16
[settings.model]
hidden = 8
[[methods]]
name = "bce"
category = "Default"
[[methods]]
name = "balancemix"
label = "BalanceMix w/o Min."
category = "Proposed"
settings = { minority = false, warmup = 1 }
"""
