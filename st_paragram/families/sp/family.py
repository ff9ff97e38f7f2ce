"""SP: the recurrent encoder and the preparation of ParaNMT; `families.psp` trains both (ACL 2019).

This family has no kind of training: its encoder and its configurations are choices of `train bitext`.
"""
