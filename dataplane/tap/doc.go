// Package tap hands RoCEv2 frames that pass an interface to a function, by a TPACKET_V3 packet ring.
//
// It is for the learner, which sees what enters an interface, and for the detector, which sees what leaves
// one. A Ring is the tap of one interface; a Group reads several in the order of time. Frames come as they
// are on the wire, with the outer VLAN tag as metadata: decoding them is the business of package roce. It
// changes no packet and sends none.
//
// Source: packet(7), and the kernel's Documentation/networking/packet_mmap.rst.
package tap
