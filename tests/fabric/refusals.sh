# What cannot be checkpointed is refused: to the program if it asks an adapter for it, at the launch if a variable chooses it, and
# otherwise at the checkpoint, before anything is touched.
export DIAPAUSE_MEMORY_PATH=/run/memory DIAPAUSE_GLOBAL_PATH=/run/global DIAPAUSE_ENERGY_METERS=off
mkdir -p /run/memory /run/global
cd /run
make_adapters 10.77.0.1 10.77.0.2

"$diapause" launch -n asks -- "$programs/refusals" rxe0

# Launches a program that holds what a checkpoint cannot have, and looks at the answer.
#   refused TEXT COMMAND...
refused() {
  local expected=$1
  shift
  rm -f go held
  "$diapause" launch -n holds -- "$@" &
  local job=$!
  until [ -e held ]; do
    kill -0 $job || exit 1
    sleep 0.1
  done
  for try in $(seq 50); do
    "$diapause" checkpoint holds >answer 2>&1 && { echo "a checkpoint was taken of: $*"; exit 1; }
    grep -qE 'has /dev/|have not arrived' answer && break
    sleep 0.2
  done
  cat answer
  grep -q "$expected" answer
  touch go
  wait $job
  echo "refused: $expected"
}

refused "rdma_cm open: it connects by rdma_cm past the library" env -u LD_LIBRARY_PATH "$programs/refusals" rxe0 hold cm
refused "uverbs0 open: it uses verbs past the library" env -u LD_LIBRARY_PATH "$programs/refusals" rxe0 hold

# Told to try seven times, the software adapter tries for ever to send what has no receiver any more.
cat >alone <<'END'
ibv_rc_pingpong -g 1 -n 1000000 -d rxe0 &
first=$!
until grep -q ":4853 .* 0A " /proc/net/tcp*; do sleep 0.1; done
ibv_rc_pingpong -g 1 -n 1000000 -d rxe1 127.0.0.1 &
second=$!
until [ "$(rdma resource show qp | grep -c 'RTS.* ibv_rc_pingpong')" = 2 ]; do sleep 0.1; done
sleep 0.5
kill -STOP $first
sleep 0.5
kill -KILL $second
wait $second
kill -CONT $first
touch held
until [ -e go ]; do sleep 0.1; done
kill -KILL $first
END
refused "their receiver, queue pair [0-9]*, is gone" bash alone

if FI_PROVIDER=cxi "$diapause" launch -n chooses -- touch started 2>answer; then exit 1; fi
cat answer
grep -q "FI_PROVIDER=cxi chooses 'cxi'" answer
[ ! -e started ]
echo "passed"
remove_adapters
