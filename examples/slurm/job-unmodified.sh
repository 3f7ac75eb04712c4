#!/bin/sh
# Does the same as job.sh for a program that knows nothing of Diapause: LAMMPS, with the input that is its first argument.
#
#   sbatch job-unmodified.sh in.melt
#
# Before the end of an allocation a last checkpoint is taken of the whole job, launcher and all, and the job is ended. Slurm
# queues it again, and the next start continues from there. When the program ends with status 0, its checkpoints are removed.
# --signal lets preemption and scancel --signal=USR1 --batch do the same.
#SBATCH --job-name=melt
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=4
#SBATCH --time=01:00:00
#SBATCH --signal=B:USR1@120
#SBATCH --requeue
#SBATCH --open-mode=append
: "${SLURM_NTASKS_PER_NODE:=4}"
exec diapause run -- diapause launch --name melt --interval 600 --level 4 --continue -- \
  mpirun -n "$SLURM_NTASKS_PER_NODE" lmp -in "$@"
