# Checkpoints of a job whose messages are on their way, at random moments: it goes on after some, and is killed after others and
# restarted on adapters that were made anew, with other addresses and numbers. $options are those of the program. With $nodes=2, its two
# sides are processes of two emulated nodes.
export DIAPAUSE_MEMORY_PATH=/run/memory DIAPAUSE_GLOBAL_PATH=/run/global DIAPAUSE_ENERGY_METERS=off
mkdir -p /run/memory /run/global
cd /run

fail() {
  echo "FAILED: $*"
  tail -n 20 /run/job* /run/answer || true
  exit 1
}

# Waits until the job can be asked, for as long as $job runs.
checkpoint() {
  for try in $(seq 100); do
    "$diapause" checkpoint fabric >/run/answer 2>&1 && { cat /run/answer; return 0; }
    kill -0 "$job" 2>/dev/null || return 1
    grep -q 'no job' /run/answer || { cat /run/answer; fail "a checkpoint failed"; }
    sleep 0.2
  done
  return 1
}

# A program of one thread has one thread while no checkpoint is under way.
see_threads() {
  [ -n "$options" ] && return 0
  for try in $(seq 50); do
    [ "$(cat /proc/[0-9]*/status | awk '/^Name:/ {name = $2} /^Threads:/ && name == "exchange" && $2 > many {many = $2} END {print many + 0}')" -le 1 ] && return 0
    sleep 0.1
  done
  fail "the program has got another thread"
}

cat >/run/on_both_nodes <<END
program="$programs/exchange $messages"
\$program rxe0 at 7777 $options &
until grep -q ":1E61 .* 0A " /proc/net/tcp; do sleep 0.1; done
"\$DIAPAUSE_RUN_ON" node1 "\$program rxe1 to 7777 $options"
wait \$!
END
set -- "$programs/exchange" "$messages" rxe0 rxe1
where=
[ "${nodes:-1}" = 1 ] || { set -- bash -eu /run/on_both_nodes; where="--emulated-nodes $nodes"; }

make_adapters 10.77.0.1 10.77.0.2
# shellcheck disable=SC2086
"$diapause" launch -n fabric $where -- "$@" $options >/run/job0 2>&1 &
job=$!
taken=0
for round in $(seq "$rounds"); do
  for again in $(seq "$checkpoints"); do
    sleep 0.$((RANDOM % 5))$((RANDOM % 10))
    checkpoint || break
    taken=$((taken + 1))
    see_threads
  done
  kill -0 "$job" 2>/dev/null || break
  pkill -KILL -x exchange || break
  wait "$job" || true
  remove_adapters
  # Numbers of queue pairs and keys begin anew with the adapters; these are taken before the job comes back.
  make_adapters "10.78.$round.1" "10.78.$round.2"
  # shellcheck disable=SC2086
  "$diapause" restart fabric $where >"/run/job$round" 2>&1 &
  job=$!
  restarted=$round
done
status=0
wait "$job" || status=$?
[ "$status" = 0 ] || fail "the job ended with $status"
[ "${restarted:-0}" = "$rounds" ] && [ "$taken" = $((rounds * checkpoints)) ] ||
  fail "the job ended after $taken checkpoints and ${restarted:-0} restarts"
grep -h "datagrams came" /run/job*
for device in rxe0 rxe1; do
  grep -h "$device: $messages and $messages messages in order, $((messages / 16)) operations" /run/job* || fail "$device did not get all"
done
echo "passed: $taken checkpoints, $restarted restarts"
