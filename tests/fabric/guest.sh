# Every script in the machine begins with this. It makes two adapters, rxe0 and rxe1, that reach one another over a pair of network
# devices.

# Makes the pair, with an address for each end. All packets go through it, although both ends are of this machine.
#   make_wire FIRST_ADDRESS SECOND_ADDRESS
make_wire() {
  ip link add wire0 type veth peer name wire1
  for end in 0 1; do
    echo 1 >/proc/sys/net/ipv4/conf/wire$end/accept_local
    echo 0 >/proc/sys/net/ipv4/conf/wire$end/rp_filter
  done
  echo 0 >/proc/sys/net/ipv4/conf/all/rp_filter
  ip address add "$1/24" dev wire0
  ip address add "$2/24" dev wire1
  ip link set wire0 up
  ip link set wire1 up
  # Otherwise packets of this machine to its own addresses would take the short way.
  ip rule add pref 100 lookup local
  ip rule del pref 0
  ip rule add pref 10 iif lo lookup 100
  ip route add "$2" dev wire0 src "$1" table 100
  ip route add "$1" dev wire1 src "$2" table 100
}

remove_wire() {
  ip link del wire0
  ip rule del pref 10
  ip rule add pref 0 lookup local
  ip rule del pref 100
}

# make_adapters FIRST_ADDRESS SECOND_ADDRESS
make_adapters() {
  make_wire "$1" "$2"
  rdma link add rxe0 type rxe netdev wire0
  rdma link add rxe1 type rxe netdev wire1
}

remove_adapters() {
  rdma link del rxe0
  rdma link del rxe1
  remove_wire
}
