#!/bin/sh
# A job that runs until it is done, over as many allocations as that takes:
#
#   sbatch job.sh
#
# It runs as it is if `diapause` is in PATH, with the heat program that is installed with it. Put your own program in its
# place. Arguments of job.sh are passed on: sbatch job.sh --size 1000.
#
# At the end of an allocation the program takes a last checkpoint and ends, Slurm queues the job again, and the next start
# continues from there. Preemption does the same. scancel ends the job; another sbatch continues it. The last line uses exec,
# so that `diapause run` receives the signals of the batch script.
#SBATCH --job-name=heat
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --time=01:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
PATH=$PATH:$(dirname "$(command -v diapause)")/../libexec/diapause
exec diapause run -- mpirun "$(command -v heat)" --size 20000 --iterations 100000 --output field.raw "$@"
