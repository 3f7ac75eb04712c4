"""Published studies, done again here and put beside the published figures.

`diapause study compress`, what compressing checkpoints costs and gains:
fields      what is compressed: files, and the built-in set
sweep       starts the command for each field and codec, and gathers what it prints
fit         P(f) = a f^b + c, and run time over the clock
published   the tables of the published study
results     the rows put together: tables
figures     draws

The studies that start programs:
runs        a plan of runs: shown before, done bit by bit, gone on with
programs    starts programs of apps/ with and without checkpoints, and says what they took
options     what all of them understand
levels      `study levels`, time, power and energy of multilevel checkpoints
messages    `study messages`, what checkpoints do to messages, and what noise looks like
multilevel  the tables of the published study of these two
throttle    `study throttle`, clocks while checkpoints are written
flush       `study flush`, clocks while checkpoints are flushed behind the program
background  the model of these
writes      `study writes`, straight to the global directory and behind the program
failures    `study failures`, programs that are killed, beside the simulator with the same failures
killing     starts a program again after each failure, and lets it fail
transparent `study transparent`, programs that know nothing of checkpoints, and the fill-time law
"""
