# Runs programs in turn with the library of Diapause and without it, and prints the microseconds that a message took each. The
# machine has one processor: processes that wait for one another must wait for events, since one that polls would keep the other
# from running. One thread that has both adapters can poll.
make_adapters 10.77.0.1 10.77.0.2
verbs=$(dirname "$diapause")/../lib/diapause/verbs

#   perftest PROGRAM OPTIONS...   prints the line with the results of a program of that package
perftest() {
  local program=$tools/$1
  shift
  "$program" -d rxe0 -x 1 -F -e "$@" >/run/server 2>&1 &
  local server=$!
  for try in $(seq 50); do
    "$program" -d rxe1 -x 1 -F -e "$@" 127.0.0.1 >/run/client 2>&1 && break
    kill -0 $server || break
    sleep 0.1
  done
  wait $server || cat /run/server >&2
  grep -E '^ *[0-9]+ +[0-9]+ ' /run/client | tail -1 || cat /run/client >&2
}

# A latency is the typical one of its program, and a rate is in millions of messages a second.
latency() { perftest ib_send_lat "$@" | awk '{print $5}'; }
rate() { perftest ib_send_bw "$@" | awk '{print 1 / $5}'; }
#   polling KIND WHAT MESSAGES BYTES [thread]
polling() { "$programs/polling" "$1" "$2" "$3" "$4" rxe0 rxe1 ${5:-}; }

#   measure COMMAND...
measure() {
  echo "$*: with $(LD_LIBRARY_PATH=$verbs:$libraries "$@")"
  echo "$*: without $(LD_LIBRARY_PATH=$libraries "$@")"
}

# The library has a thread during checkpoints, after which the C library takes a process for one of several threads. So this measures
# also a program that has a second thread, without the library.
measure_polling() {
  measure polling "$@"
  echo "polling $*: with_thread $(polling "$@" thread)"
}

for round in $(seq "$rounds"); do
  for kind in rc ud; do
    for what in latency rate; do measure_polling $kind $what 5000 64; done
  done
  measure_polling rc rate 200 65536
  measure latency -c RC -s 64 -n 1000
  measure latency -c UD -s 64 -n 1000
  measure rate -c RC -s 64 -n 5000
  measure rate -c UD -s 64 -n 5000
  measure rate -c RC -s 65536 -n 500
done
remove_adapters
