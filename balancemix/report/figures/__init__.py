"""The paper's figures: pure functions from numbers to matplotlib figures, one family a module.

pentagon    ranks from five perspectives, with the area that they span
frequency   AP and confidence by class frequency, with Pearson's coefficient
curves      mAP by epoch, last against best; what the minority sampler draws
classes     how often each class occurs
differences what each class gained or lost between two runs
mixtures    losses of a class and side, with the two Gaussians fitted to them
reliability how often a label is an error, by the probability given to it
style       fonts, colours and sizes; `save` writes SVG and PNG
"""
