// Package lab realises a network topology on one Linux machine: a network namespace and a private
// mount namespace per node, veth pairs as links, Linux bridges, and the programs that the nodes run.
//
// It reads containerlab's topology file (https://containerlab.dev/manual/topo-def-file/), so that the
// same file also deploys with containers. It honours the kinds linux and bridge, and of their keys
// those in honouredNodeKeys; keys that containerlab knows and that mean nothing on namespaces are
// listed in ignoredNodeKeys and reported; anything else is an error with its line.
//
// What differs from containerlab, because there is no container image to start:
//
//   - `image` and `cmd` pick a program of this machine (see programs), never a file system. A node
//     sees the machine's files, with a /run of its own, an /etc whose changes stay in the node, and
//     empty /etc/frr, /etc/bird, /etc/exabgp and /etc/pncd for the node's binds.
//   - `exec` runs when the links are there and before the node's program starts, so that a program
//     finds the addresses that exec set.
//   - `network-mode: container:<node>` shares that node's network namespace; `none` is the default.
//
// A lab leaves nothing behind: Down removes it in any state of completion; programs die with the
// process that started them; the namespaces that a SIGKILL leaves are removed by the next Up of any lab, from
// a state file that names namespaces, folders, and processes by pid and start time. What stays, as after the
// first `ip netns add`, is that /run/netns is a shared mount point.
//
// It needs root, and nsenter, unshare, mount and sh; topologies mostly use ip (iproute2). It is not for production use
// and not a container runtime.
package lab
