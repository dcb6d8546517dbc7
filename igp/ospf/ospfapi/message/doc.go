// Package message is the codec of the OSPF API of FRR's ospfd: the messages that a client and the daemon exchange
// over TCP (FRR, doc/developer/ospf-api.rst and ospfd/ospf_api.h, version 1). Its numbers are in network byte order.
//
// It knows all messages that the daemon sends. Of those that a client may send it knows four, which are Requests: none
// of them changes anything in the daemon but what it tells this client. Messages to register an opaque type, and to
// originate or delete LSAs, can't be made with it.
//
// It is not for what a message means: that is decided elsewhere.
package message
