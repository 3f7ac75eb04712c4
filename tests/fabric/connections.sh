# Programs of Debian's rdmacm-utils, as they are packaged, connect by rdma_cm. They are checkpointed on their way, killed, and restarted
# on adapters that were made anew with other addresses. The first checkpoint is taken while one waits for a connection. Those that run
# long enough are connected then, and go on after the restart; the others connect after it, by the address that the first one had. With
# $nodes=2, the two are on an emulated node each.
export DIAPAUSE_MEMORY_PATH=/run/memory DIAPAUSE_GLOBAL_PATH=/run/global DIAPAUSE_ENERGY_METERS=off
mkdir -p /run/memory /run/global
cd /run

cat >both <<'END'
$server &
until [ -e /run/go ]; do kill -0 $! || exit 1; sleep 0.1; done
for client in "$first" "$second"; do
  [ -z "$client" ] || { eval "$far $client" && echo "$client: ended well"; }
done
[ -z "$stays" ] || kill %1
wait %1 || [ -n "$stays" ]
END
where=
export far=
[ "$nodes" = 1 ] || { where="--emulated-nodes $nodes"; far='$DIAPAUSE_RUN_ON node1'; }

fail() {
  echo "FAILED: $*"
  cat /run/before /run/after /run/answer || true
  exit 1
}

round=0
# Runs $server and $first on their way, and $second, which begins after the restart.
#   run NAME   the program that is killed
run() {
  round=$((round + 1))
  rm -f go
  : >before >after
  make_adapters "10.77.$round.1" "10.77.$round.2"
  # shellcheck disable=SC2086
  "$diapause" launch -n connects $where -- bash -e /run/both >before 2>&1 &
  local job=$! again=0
  until grep -Eq ":(EF|F.).. 0+:0000 0A " /proc/net/tcp*; do # a port from 61184 on
    kill -0 $job || fail "$1 does not wait for connections"
    sleep 0.2
  done
  "$diapause" checkpoint connects || fail "no checkpoint of $1, which waits"
  [ -z "$first" ] || touch go
  until [ -z "$first" ] || grep -Eq ": [0-9A-F]{8}:(EF|F.).. [0-9A-F:]{13} 01 " /proc/net/tcp; do
    kill -0 $job || fail "$1 does not connect"
    sleep 0.1
  done
  while [ -n "$first" ] && [ "$again" -lt "$checkpoints" ]; do
    again=$((again + 1))
    sleep 0.$((RANDOM % 8 + 1))
    "$diapause" checkpoint connects >answer 2>&1 || fail "no checkpoint of $1"
    cat answer
  done
  pkill -KILL -x "$1" || fail "$1 ended too early"
  wait $job || true
  remove_adapters
  make_adapters "10.78.$round.1" "10.78.$round.2"
  # shellcheck disable=SC2086
  "$diapause" restart connects $where >after 2>&1 &
  job=$!
  touch go
  wait $job || fail "$1 does not go on"
  cat after
  for client in "$first" "$second"; do
    [ -z "$client" ] || grep -qF "$client: ended well" after || fail "$client"
  done
  remove_adapters
}

# Whoever is no manager of Diapause is told to the program, which does not wait for ever.
strangers() {
  make_adapters 10.77.200.1 10.77.200.2
  client="$tools/rping -c -a 10.77.200.2 -C 1"
  "$diapause" launch -n connects -- $client >answer 2>&1 && fail "a connection to nobody"
  grep -q RDMA_CM_EVENT_REJECTED answer || fail "no answer about nobody"
  /usr/bin/python3 -c '
import socket
door = socket.create_server(("", 63638))
other, _ = door.accept()
other.sendall(b"SSH-2.0-stranger\r\n")
other.recv(100)' &
  until grep -q ":F896 .* 0A " /proc/net/tcp; do sleep 0.1; done
  "$diapause" launch -n connects -- $client >answer 2>&1 && fail "a connection to a stranger"
  grep -q RDMA_CM_EVENT_UNREACHABLE answer || fail "no answer about a stranger"
  remove_adapters
}

for kind in $kinds; do
  to="10.77.$((round + 1)).2"
  export server first="" second="" stays=""
  case $kind in
    strangers) strangers ;;
    rping) # each message is compared with what was sent
      server="$tools/rping -s -a $to -C $iterations -S 1000 -V"
      first="$tools/rping -c -a $to -C $iterations -S 1000 -V"
      run rping
      ;;
    rping_again)
      server="$tools/rping -s -P -a 0.0.0.0 -S 1000 -V"
      first="$tools/rping -c -a $to -C $iterations -S 1000 -V"
      second="$tools/rping -c -a $to -C 20 -S 1000 -V"
      stays=yes
      run rping
      ;;
    rdma_server) # calls that wait
      server="$tools/rdma_server"
      second="$tools/rdma_client -s $to"
      run rdma_server
      ;;
    ucmatose) # several connections of one channel
      server="$tools/ucmatose -c 4 -C 40"
      second="$tools/ucmatose -s $to -c 4 -C 40"
      run ucmatose
      ;;
    udaddy) # datagrams
      server="$tools/udaddy -c 2 -C 20"
      second="$tools/udaddy -s $to -c 2 -C 20"
      run udaddy
      ;;
  esac
  echo "$kind: passed"
done
