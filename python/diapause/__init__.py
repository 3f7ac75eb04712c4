"""What the checkpoints of a job cost, from what it left behind: records, sums, pictures and a page.

records    reads ledgers and power traces
account    adds up who used the energy
timeline   power over time, and phases beside it
pictures   draws
page       puts tables and pictures into one HTML file
files      writes them
commands   what can be typed
study      compression, beside the published study
"""
