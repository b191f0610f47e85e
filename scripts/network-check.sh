#!/usr/bin/env bash
# Measures what the models of `halox plan --hosts` are fitted to and held against, into a folder:
#
#   scripts/network-check.sh FOLDER [TURNS]
#
# Two hosts, which are network namespaces of this one, joined by links whose rate the kernel limits (tc tbf), to some rates one
# after the other; then two processes of one host. For each: the links by `bench links`, which writes the network, and the steps
# of schemes on one and on two of them, in so many turns (5), since on a machine with few cores any other program disturbs them.
#
# It takes root, iproute2, two cores, bin/halox (make build) and the MPICH of make mpi. Each host has one core to itself. MPICH
# sends messages of any size at once, without asking the receiver first: where it asks, the answer waits in the queue of a
# slow link behind the receiver's own message, and two hosts that exchange faces send one after the other.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=${1:?name a folder}
turns=${2:-5}
mkdir -p "$folder"
halox=$PWD/bin/halox
launch=$PWD/.mpi/mpich/bin/mpiexec
[ -x "$launch" ] || launch=$PWD/.mpi/mpich/local/bin/mpiexec # where Debian's pip puts it
name=hxcheck$$
scratch=$(mktemp -d)
export HALOX_CACHE=$scratch/cache UCX_RNDV_THRESH=inf

remove() {
	for space in $name-node0 $name-node1 $name-bridge; do
		ip netns delete "$space" 2>/dev/null || true
		rm -rf "/etc/netns/$space"
	done
	rm -rf "$scratch"
}
trap remove EXIT

ip netns add $name-bridge
ip -n $name-bridge link add br0 type bridge
ip -n $name-bridge link set br0 up
for i in 0 1; do
	ip netns add $name-node$i
	mkdir -p /etc/netns/$name-node$i
	printf '127.0.0.1 localhost\n10.77.0.1 node0\n10.77.0.2 node1\n' >/etc/netns/$name-node$i/hosts
	ip -n $name-node$i link set lo up
	ip -n $name-node$i link add eth0 type veth peer name port$i netns $name-bridge
	ip -n $name-bridge link set port$i master br0 up
	ip -n $name-node$i addr add 10.77.0.$((i + 1))/24 dev eth0
	ip -n $name-node$i link set eth0 up
done

# What the launcher takes in place of ssh.
cat >"$scratch/agent" <<END
#!/bin/sh
while [ "\${1#-}" != "\$1" ]; do shift; done
host=\$1; shift
exec ip netns exec $name-\$host unshare -u taskset -c \${host#node} sh -c "hostname \$host; \$*"
END
chmod +x "$scratch/agent"

hosts() { # runs halox on both hosts
	env MPIR_CVAR_CH4_NETMOD=ucx UCX_TLS=tcp,self UCX_NET_DEVICES=eth0 \
		ip netns exec $name-node0 unshare -u taskset -c 0 sh -c 'hostname node0; exec "$@"' sh \
		"$launch" -n 2 -launcher ssh -launcher-exec "$scratch/agent" -hosts node0,node1 -ppn 1 "$halox" "$@"
}

processes() { # runs it as two processes of this host, on one core each
	"$launch" -n 2 -bind-to user:0,1 "$halox" "$@"
}

steps() { # RECORD HOW: the schemes that run over processes
	"$2" bench schemes --backend host --points 32,40,48,56,64,80,96,112,128,160,192 --schemes assisted,two-stream --paths staged \
		--device-counts 1,2 --precisions float64 --budget 500ms --record "$1"
}

for rate in 50 200 1000; do # Mbit/s, with packets and a bucket that are small compared with a face, except what the cores limit
	read -r packet bucket <<<"$(case $rate in 50) echo 2048 2500 ;; 200) echo 4096 5000 ;; *) echo 8192 10000 ;; esac)"
	for i in 0 1; do
		ip -n $name-node$i link set eth0 gso_max_size "$packet"
		ip netns exec $name-node$i tc qdisc replace dev eth0 root tbf rate ${rate}mbit burst "$bucket" latency 400ms
	done
	hosts bench links --backend host --sizes 8,4KiB,64KiB,1MiB --modes one-way,both-ways --budget 200ms \
		--record "$folder/links-$rate.json" --network-file "$folder/network-$rate.yaml"
	for turn in $(seq "$turns"); do
		steps "$folder/schemes-$rate-$turn.json" hosts
	done
done
for turn in $(seq "$turns"); do
	steps "$folder/schemes-processes-$turn.json" processes
done

# The models: of each network alone, of all of them together, and of processes.
fit() { # NAME HOSTS FILES: files are joined by commas
	"$halox" plan configs/heat3d.yaml --hosts "$2" --devices-per-host 1 --networks hdr200 --measured "$3" --record "$folder/fit-$1.json"
}
all=
for rate in 50 200 1000; do
	some=
	for turn in $(seq "$turns"); do
		some+=,$folder/schemes-$rate-$turn.json@$folder/network-$rate.yaml
	done
	fit $rate 2 "${some#,}"
	all+=$some
done
fit all 2 "${all#,}"
some=
for turn in $(seq "$turns"); do
	some+=,$folder/schemes-processes-$turn.json
done
fit processes 2 "${some#,}"
