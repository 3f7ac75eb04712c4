# The ping-pongs of Debian's ibverbs-utils, as they are packaged, are checkpointed on their way, killed, and restarted on adapters that
# were made anew with other addresses. -N is the way to post by ibv_wr_*. The first checkpoint is taken of the one that waits for the
# other, which then hears of a queue pair by the number that it had before.
export DIAPAUSE_MEMORY_PATH=/run/memory DIAPAUSE_GLOBAL_PATH=/run/global DIAPAUSE_ENERGY_METERS=off
mkdir -p /run/memory /run/global
cd /run

cat >both <<'END'
program=$1
shift
$program "$@" -d rxe0 &
until [ -e /run/go ]; do sleep 0.1; done
$program "$@" -d rxe1 127.0.0.1
wait $!
END

round=0
for kind in rc "rc -N" ud srq; do
  round=$((round + 1))
  rm -f go
  make_adapters "10.77.$round.1" "10.77.$round.2"
  words="ibv_${kind/ -N/}_pingpong -g 1 -s 1024 -n $iterations"
  [ "$kind" = "rc -N" ] && words="$words -N"
  # shellcheck disable=SC2086
  "$diapause" launch -n pingpong -- bash /run/both $words >first 2>&1 &
  job=$!
  until grep -q ":4853 .* 0A " /proc/net/tcp*; do sleep 0.2; done
  "$diapause" checkpoint pingpong
  touch go
  for again in 1 2 3; do
    sleep 1
    "$diapause" checkpoint pingpong
  done
  ! grep -q iters first
  pkill -KILL ibv_
  wait $job || true
  remove_adapters
  make_adapters "10.78.$round.1" "10.78.$round.2"
  "$diapause" restart pingpong >second 2>&1
  cat first second
  [ "$(grep -c "$iterations iters" second)" = 2 ]
  echo "$kind: passed"
  remove_adapters
done
