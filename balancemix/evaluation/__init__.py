"""How good are predictions, and how good were the decisions on labels?"""
