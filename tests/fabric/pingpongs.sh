# The ping-pongs of Debian's ibverbs-utils, as they are packaged, are checkpointed on their way, killed, and restarted on adapters that
# were made anew with other addresses. -N is the way to post by ibv_wr_*. The first checkpoint is taken of the one that waits for the
# other, which then hears of a queue pair by the number that it had before. With $nodes=2, the two are on an emulated node each.
export DIAPAUSE_MEMORY_PATH=/run/memory DIAPAUSE_GLOBAL_PATH=/run/global DIAPAUSE_ENERGY_METERS=off
mkdir -p /run/memory /run/global
cd /run

cat >both <<'END'
program=$1
shift
$program "$@" -d rxe0 &
until [ -e /run/go ]; do sleep 0.1; done
$far $program "$@" -d rxe1 127.0.0.1
wait $!
END
where=
export far=
[ "$nodes" = 1 ] || { where="--emulated-nodes $nodes"; far='eval $DIAPAUSE_RUN_ON node1'; }

# Prints what adapters and programs say for themselves.
tell_state() {
  cat first
  rdma resource show qp
  grep -Hvx 0 /sys/class/infiniband/*/ports/1/hw_counters/* || true
  ip neighbour
  ps -eo pid,stat,wchan:20,time,args | grep "[i]bv_"
}

# Starts the job with so many messages, takes checkpoints, and kills it. Returns 1 if it had ended, on a computer that is too fast for
# these, or one side of it: the software adapter tries for ever to send what has no receiver any more.
kill_on_its_way() {
  rm -f go
  # shellcheck disable=SC2086
  "$diapause" launch -n pingpong $where -- bash /run/both $words -n "$1" >first 2>&1 &
  job=$!
  until grep -q ":4853 .* 0A " /proc/net/tcp*; do sleep 0.2; done
  "$diapause" checkpoint pingpong || exit 1
  touch go
  for again in 1 2 3; do
    sleep 0.5
    if ! "$diapause" checkpoint pingpong >answer 2>&1; then
      cat answer
      if grep -q "is gone" answer && grep -q "iters in" first; then
        pkill -KILL ibv_
        return 1
      fi
      grep -qE "no job|ended" answer && return 1
      tell_state
      exit 1
    fi
    cat answer
  done
  pkill -KILL ibv_
}

round=0
for kind in $kinds; do
  kind=${kind/+/ }
  round=$((round + 1))
  make_adapters "10.77.$round.1" "10.77.$round.2"
  many=$iterations
  [ "$kind" = srq ] && many=$((8 * iterations)) # it has 16 on their way
  words="ibv_${kind/ -N/}_pingpong -g 1 -s 1024"
  [ "$kind" = "rc -N" ] && words="$words -N"
  until kill_on_its_way "$many"; do
    wait $job || true
    grep "iters in" first || { cat first; exit 1; }
    many=$((4 * many))
  done
  wait $job || true
  remove_adapters
  make_adapters "10.78.$round.1" "10.78.$round.2"
  # shellcheck disable=SC2086
  "$diapause" restart pingpong $where >second 2>&1
  cat first second
  [ "$(grep -c "$many iters" second)" = 2 ]
  echo "$kind: passed"
  remove_adapters
done
