# The ping-pongs of Debian's ibverbs-utils, as they are packaged, are checkpointed on their way, killed, and restarted on adapters that
# were made anew with other addresses. -N is the way to post by ibv_wr_*.
export DIAPAUSE_MEMORY_PATH=/run/memory DIAPAUSE_GLOBAL_PATH=/run/global DIAPAUSE_ENERGY_METERS=off
mkdir -p /run/memory /run/global
cd /run

cat >both <<'END'
program=$1
shift
$program "$@" -d rxe0 &
for try in $(seq 50); do
  $program "$@" -d rxe1 127.0.0.1 && break
  kill -0 $! || break
  sleep 0.1
done
wait $!
END

round=0
for kind in rc "rc -N" ud srq; do
  round=$((round + 1))
  make_adapters "10.77.$round.1" "10.77.$round.2"
  words="ibv_${kind/ -N/}_pingpong -g 1 -s 1024 -n $iterations"
  [ "$kind" = "rc -N" ] && words="$words -N"
  # shellcheck disable=SC2086
  "$diapause" launch -n pingpong -- bash /run/both $words >first 2>&1 &
  job=$!
  until "$diapause" checkpoint pingpong --check 2>/dev/null; do sleep 0.2; done
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
