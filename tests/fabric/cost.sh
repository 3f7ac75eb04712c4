# Runs the packaged ping-pongs in turn with the library of Diapause and without it, and prints what each took.
make_adapters 10.77.0.1 10.77.0.2
verbs=$(dirname "$diapause")/../lib/diapause/verbs

#   both PROGRAM OPTIONS...   prints the microseconds of an iteration
both() {
  "$@" -d rxe0 >/run/server 2>&1 &
  local server=$!
  for try in $(seq 50); do
    "$@" -d rxe1 127.0.0.1 >/run/client 2>&1 && break
    kill -0 $server || break
    sleep 0.1
  done
  wait $server
  sed -n 's/.*= \([0-9.]*\) usec.iter/\1/p' /run/client
}

for round in $(seq "$rounds"); do
  for kind in "rc 64" "ud 64" "rc 65536"; do
    size=${kind#* }
    count=$iterations
    [ "$size" -gt 64 ] && count=$((iterations / 4))
    words="ibv_${kind% *}_pingpong -g 1 -s $size -n $count"
    # shellcheck disable=SC2086
    echo "$kind: with $(LD_LIBRARY_PATH=$verbs both $words) without $(both $words)"
  done
done
remove_adapters
