#!/bin/bash
#SBATCH --requeue
#SBATCH --open-mode=append
# Counts steps, and can be stopped at any time: checkpoint.sh STEPS
# At SIGCONT (asked to make way soon) and SIGTERM (stopped now) it writes its checkpoint; when Slurm
# starts it again it goes on from there. From the first warning on, every step is saved.
steps=${1:-60}
checkpoint="$PWD/checkpoint-$SLURM_JOB_ID"
step=$(cat "$checkpoint" 2>/dev/null || echo 0)
warned=no
# whole or not at all: a kill in the middle leaves the checkpoint before
save() {
    echo "$step" >"$checkpoint.new" && sync "$checkpoint.new" && mv "$checkpoint.new" "$checkpoint"
}
trap 'save; warned=yes; echo "warned, checkpoint at step $step"' CONT
trap 'save; echo "stopped, checkpoint at step $step"; exit 0' TERM
echo "start ${SLURM_RESTART_COUNT:-0} from step $step on $SLURM_JOB_NODELIST"
while [ "$step" -lt "$steps" ]; do
    # the work of one step, in the background, for bash answers no signal before its child has ended
    sleep 1 &
    # a signal ends the first wait, not the work
    wait $! || wait $! || true
    step=$((step + 1))
    echo "step $step"
    [ "$warned" = yes ] && save
done
echo "finished at step $step"
