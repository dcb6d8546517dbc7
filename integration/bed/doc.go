// Package bed is the lab that the demonstration and the closed-loop tests share: sender, proxy router
// with pncd beside FRR, route reflector (FRR), congestion node with pncd, receiver, over IPv4 and IPv6.
//
// It starts the lab, marks CE behind the congestion node, and reads the nodes through their gRPC sockets;
// what is to be seen there is its users' business.
package bed
