package host

import (
	"fmt"

	"github.com/vishvananda/netlink"
)

// unmarking are the queueing disciplines that never set ECN's CE mark themselves (tc(8)). Of others it is not known: red,
// codel, fq_codel, fq, pie, cake and sfq can, by their settings, and so may one that is not known here.
var unmarking = map[string]bool{
	"noqueue": true, "pfifo": true, "bfifo": true, "pfifo_fast": true, "pfifo_head_drop": true, "mq": true, "mqprio": true,
	"multiq": true, "prio": true, "tbf": true, "htb": true, "hfsc": true, "drr": true, "ets": true, "qfq": true, "cbs": true,
	"etf": true, "taprio": true, "plug": true, "clsact": true, "ingress": true,
}

// MarkingQdisc returns the kind of a queueing discipline of an interface that may mark packets CE (RFC 3168), or the empty
// string. namespace is as for Open. An interface that does not exist is an error.
func MarkingQdisc(namespace, name string) (kind string, err error) {
	h, err := Open(namespace)
	if err != nil {
		return "", err
	}
	defer h.Close()
	l, err := h.nl.LinkByName(name)
	if err != nil {
		return "", fmt.Errorf("host: %s: %w", name, err)
	}
	all, err := dump(func() ([]netlink.Qdisc, error) { return h.nl.QdiscList(l) })
	if err != nil {
		return "", fmt.Errorf("host: queueing disciplines of %s: %w", name, err)
	}
	for _, q := range all {
		if !unmarking[q.Type()] {
			return q.Type(), nil
		}
	}
	return "", nil
}
