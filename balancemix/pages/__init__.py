"""Pages: self-contained HTML files that open anywhere and need no network.

shell    what all pages share: style, tables, figures, the few lines of script
demo     two methods on noisy digits
run      all that one run left behind
bench    many runs side by side
tables   the paper's tables of them
"""
