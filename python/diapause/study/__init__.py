"""`diapause study compress`: what compressing checkpoints costs and gains, measured here and beside the published study.

fields     what is compressed: files, and the built-in set
sweep      starts the command for each field and codec, and gathers what it prints
fit        P(f) = a f^b + c, and run time over the clock
published  the tables of the published study
results    the rows put together: tables
figures    draws
"""
