# Two ranks of Open MPI that communicate over libfabric's verbs, and connect by rdma_cm, are checkpointed on their way, killed, and restarted on adapters that
# were made anew with other addresses. Their result is that of the same program over TCP.
export DIAPAUSE_MEMORY_PATH=/run/memory DIAPAUSE_GLOBAL_PATH=/run/global DIAPAUSE_ENERGY_METERS=off
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
mkdir -p /run/memory /run/global
cd /run
make_adapters 10.77.0.1 10.77.0.2
# The software adapter has no queues of the size that libfabric asks for by itself.
over_verbs="OMPI_MCA_pml=cm OMPI_MCA_mtl=ofi FI_PROVIDER=verbs;ofi_rxm FI_UNIVERSE_SIZE=2 FI_VERBS_TX_SIZE=16 FI_VERBS_RX_SIZE=16
  FI_OFI_RXM_TX_SIZE=16 FI_OFI_RXM_RX_SIZE=16 FI_OFI_RXM_MSG_TX_SIZE=16 FI_OFI_RXM_MSG_RX_SIZE=16"
program="mpirun --oversubscribe -n 2 $heat --size 128 --iterations $iterations"

fail() {
  echo "FAILED: $*"
  tail -n 20 /run/job* /run/progress || true
  exit 1
}

# shellcheck disable=SC2086
env $over_verbs "$diapause" launch -n ranks -- $program --output verbs.raw --progress progress >job0 2>&1 &
job=$!
until [ -e progress ]; do
  kill -0 $job || fail "it does not begin"
  sleep 0.2
done
rank=$(pgrep -f "^$heat" | head -n 1)
grep -q diapause/verbs/librdmacm.so.1 "/proc/$rank/maps" || fail "it does not use the connection manager"
ls -l "/proc/$rank/fd" | grep -q /dev/infiniband/uverbs || fail "it does not use verbs"
for again in 1 2; do
  sleep 0.5
  "$diapause" checkpoint ranks || fail "no checkpoint"
done
pkill -KILL -f "^$heat" || fail "it ended too early"
wait $job || true
[ ! -s verbs.raw ] || fail "it ended too early"
remove_adapters
make_adapters 10.78.0.1 10.78.0.2
"$diapause" restart ranks >job1 2>&1 || fail "the restart ended with $?"
env OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,tcp $program --output tcp.raw >job2 2>&1 || fail "the program does not run over TCP"
cmp verbs.raw tcp.raw || fail "the result is another one"
echo "passed"
remove_adapters
