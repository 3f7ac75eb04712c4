#!/bin/sh
# A job that goes on until it is done, over as many allocations as it takes:
#
#   sbatch examples/slurm/job.sh
#
# When the time of an allocation is over, the program takes a last checkpoint and ends, Slurm queues the job again, and
# the next start goes on from there. Preemption does the same. scancel ends it; another sbatch goes on.
# exec, so that a signal to the batch script is one to diapause run.
#SBATCH --job-name=heat
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --time=01:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
exec diapause run -- mpirun heat --size 20000 --iterations 100000 --output field.raw
