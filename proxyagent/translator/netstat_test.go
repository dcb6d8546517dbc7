package translator

import (
	"strings"
	"testing"
)

const snmp = `Ip: Forwarding DefaultTTL InReceives
Ip: 1 64 1000
Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors IgnoredMulti MemErrors
Udp: 10 20 30 40 50 60 70 80 90
UdpLite: InDatagrams InCsumErrors
UdpLite: 1 2
`

const snmp6 = `Ip6InReceives                   	100
Udp6InErrors                    	5
Udp6InCsumErrors                	6
UdpLite6InCsumErrors            	7
`

func TestCountersOfTheNamespaceAreFoundByName(t *testing.T) {
	if v, err := parseCounter([]byte(snmp), "Udp:", "InCsumErrors"); v != 70 || err != nil {
		t.Errorf("IPv4: %d, %v; want 70", v, err)
	}
	if v, err := parseCounter([]byte(snmp6), "Udp6InCsumErrors", ""); v != 6 || err != nil {
		t.Errorf("IPv6: %d, %v; want 6", v, err)
	}
	for _, b := range []string{"", "Udp: a b\n", "Udp: InCsumErrors\nUdp:\n", "Udp: InCsumErrors\nUdp: x\n"} {
		if _, err := parseCounter([]byte(b), "Udp:", "InCsumErrors"); err == nil {
			t.Errorf("%q: no error", b)
		}
	}
	if _, err := parseCounter([]byte(strings.Replace(snmp, "InCsumErrors", "Other", 1)), "Udp:", "InCsumErrors"); err == nil {
		t.Error("a counter that is not there: no error")
	}
}
