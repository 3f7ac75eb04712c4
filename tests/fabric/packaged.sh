# Runs the ping-pongs of Debian's ibverbs-utils, from one adapter to the other.
make_adapters 10.77.0.1 10.77.0.2

for kind in rc ud srq; do
  options="-g 1 -n 200"
  ibv_${kind}_pingpong $options -d rxe0 >server-$kind 2>&1 &
  server=$!
  for try in $(seq 50); do
    ibv_${kind}_pingpong $options -d rxe1 127.0.0.1 >client-$kind 2>&1 && break
    kill -0 $server || break
    sleep 0.1
  done
  cat client-$kind
  wait $server
  grep -q "200 iters" client-$kind
  echo "$kind: passed"
done
remove_adapters
