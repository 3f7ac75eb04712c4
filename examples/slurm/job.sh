#!/bin/sh
# A job that goes on until it is done, over as many allocations as it takes:
#
#   sbatch job.sh
#
# It runs as it is where `diapause` is in PATH, with the heat program that is installed with it; put your own program in its
# place. Arguments of job.sh are passed on: sbatch job.sh --size 1000.
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
PATH=$PATH:$(dirname "$(command -v diapause)")/../libexec/diapause
exec diapause run -- mpirun "$(command -v heat)" --size 20000 --iterations 100000 --output field.raw "$@"
