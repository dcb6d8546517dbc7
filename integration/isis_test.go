package integration

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	pncv1 "pncd/api/pnc/v1"
	"pncd/integration/lab"
)

func TestISISFlagThroughTwoRouters(t *testing.T) {
	for name, o := range map[string]isisOptions{
		"level 2": {},
		"level 1": {level: "level-1"},
		"MD5": {
			circuit: " isis password md5 hellokey\n", router: " domain-password md5 domainkey authenticate snp validate\n",
			keys:   "  level_2_keys: [{algorithm: hmac-md5, password: domainkey}]\n",
			hellos: "      keys: [{algorithm: hmac-md5, password: hellokey}]\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := upISIS(t, o)
			l.resolves("10.1.0.2", igpProxy)
			l.resolves("2001:db8:1::2", igpProxy)
			l.resolves("10.99.0.1", "RESOLVE_REASON_NO_ROUTE")
		})
	}
}

func TestISISOnALAN(t *testing.T) {
	l := upISIS(t, isisOptions{lan: true})
	l.resolves("10.1.0.2", igpProxy)
	if text := l.vtysh("r1", "show isis interface detail"); !strings.Contains(text, "is DIS") {
		t.Errorf("the router is not the designated system:\n%s", text)
	}
}

func TestISISWrongKeyStaysDown(t *testing.T) {
	l := upISIS(t, isisOptions{
		circuit: " isis password md5 right\n", hellos: "      keys: [{algorithm: hmac-md5, password: wrong}]\n",
	})
	l.eventually("the routers see each other", func() string {
		if text := l.vtysh("r1", "show isis neighbor"); !strings.Contains(text, "r2") {
			return text
		}
		return ""
	})
	// The leaf has refused more hellos than an adjacency takes, and has sent as many itself: one a second.
	isis := pncv1.NewIsisServiceClient(l.dial("pa"))
	l.eventually("pa refuses the router's hellos", func() string {
		ctx, cancel := context.WithTimeout(l.ctx, time.Second)
		defer cancel()
		st, err := isis.GetIsis(ctx, &pncv1.GetIsisRequest{})
		if err != nil || st.GetDropped()["authentication"] < 5 {
			return fmt.Sprintf("%v, %v", st.GetDropped(), err)
		}
		if n := st.GetCircuits()[0].GetNeighbors(); len(n) != 0 {
			t.Fatalf("an adjacency with the wrong key: %v", n)
		}
		return ""
	})
	if text := l.vtysh("r1", "show isis neighbor"); strings.Contains(text, "pa") || strings.Contains(text, "0000.0000.0010") {
		t.Fatalf("an adjacency with the wrong key:\n%s", text)
	}
}

func TestISISRestartAndStop(t *testing.T) {
	l := upISIS(t, isisOptions{})
	l.resolves("10.1.0.2", igpProxy)
	pncd := l.killAndStartLeaf()
	l.resolves("10.1.0.2", igpProxy)

	if err := pncd.Stop(); err != nil {
		t.Errorf("pncd's end: %v", err)
	}
	l.resolves("10.1.0.2", "RESOLVE_REASON_NO_ROUTE")
	deadline := time.Now().Add(75 * time.Second)
	for {
		if text := l.vtysh("r1", "show isis database"); !strings.Contains(text, "pa.00-00") && !strings.Contains(text, "0000.0000.0010") {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("the purge is not forgotten:\n%s", text)
		}
		time.Sleep(time.Second)
	}
	l.noTransit()
}

func TestISISProxyBehindADeadRouterIsNotBelieved(t *testing.T) {
	l := upISIS(t, isisOptions{})
	l.resolves("10.1.0.2", igpProxy)
	l.kill("r1", "isisd") // its LSP and pa's stay in r2's database for 20 minutes
	l.eventually("r2 has lost the adjacency", func() string {
		if text := l.vtysh("r2", "show isis neighbor"); regexp.MustCompile(`(?m)^\s*r1\s.*\bUp\b`).MatchString(text) {
			return text
		}
		return ""
	})
	lost := time.Now()
	l.answers("10.1.0.2", "RESOLVE_REASON_NO_ROUTE")
	took := time.Since(lost)
	t.Logf("figure: the learner dropped the route %s after r2 had lost the adjacency", took.Round(time.Millisecond))
	if took > 10*time.Second { // "at once after the adjacency loss": r2 waits 1 s for a new LSP, and pncd for SPF
		t.Errorf("the learner dropped the route only after %s", took)
	}
	l.noTransit()
	if text := l.vtysh("r2", "show isis database"); !strings.Contains(text, "pa.00-00") && !strings.Contains(text, "0000.0000.0010.00-00") {
		t.Fatalf("the LSP is gone, so the test shows nothing:\n%s", text)
	}
}

func TestISISChangeAtReload(t *testing.T) {
	l := upISIS(t, isisOptions{})
	l.resolves("10.1.0.2", igpProxy)
	begin := time.Now()
	l.changeSender()
	l.answers("10.7.0.2", igpProxy)
	took := time.Since(begin)
	t.Logf("figure: a changed prefix arrives behind two routers after %s", took.Round(time.Millisecond))
	if took > 2*time.Second {
		t.Errorf("a changed prefix took %s through two routers, at most 2 s are allowed", took)
	}
	l.resolves("10.1.0.2", "RESOLVE_REASON_NO_ROUTE")
}

func TestISISPacketsAreDecodedWithoutAMark(t *testing.T) {
	needPrograms(t, "tshark")
	l := upISIS(t, isisOptions{
		keys:   "  level_2_keys: [{id: 0, algorithm: hmac-md5, password: k}]\n",
		router: " domain-password md5 k authenticate snp validate\n",
	})
	file := filepath.Join(t.TempDir(), "pa.pcap")
	p, err := l.Start(l.ctx, "pa", lab.Proc{Argv: []string{"tshark", "-q", "-i", "eth1", "-F", "pcap", "-w", file}})
	if err != nil {
		t.Fatal(err)
	}
	mac := strings.TrimSpace(l.run("pa", "cat", "/sys/class/net/eth1/address"))
	captured := func(types ...string) {
		t.Helper()
		l.eventually("PDUs of pa are in the capture", func() string {
			seen := decode(t, file, "eth.src=="+mac+" && isis", "isis.type")
			for _, typ := range types {
				if !strings.Contains("\n"+seen, "\n"+typ+"\n") {
					return "none of type " + typ
				}
			}
			return ""
		})
	}
	captured("17") // it runs
	l.resolves("10.1.0.2", igpProxy)
	l.changeSender()
	l.resolves("10.7.0.2", igpProxy)
	l.vtysh("r1", "configure terminal", "interface eth2", "isis metric 20") // a new LSP, which pa acknowledges
	captured("17", "20", "25", "27")
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	if marks := decode(t, file, "eth.src=="+mac+" && isis && (_ws.malformed || _ws.expert.severity >= 6291456)", "_ws.expert.message"); marks != "" {
		t.Errorf("tshark says:\n%s", marks)
	}
}

// decode prints a field of the packets of a capture that match; a capture that is still written may end early.
func decode(t *testing.T, file, filter, field string) string {
	t.Helper()
	out, err := exec.Command("tshark", "-r", file, "-Y", filter, "-T", "fields", "-e", field).Output()
	if _, cut := err.(*exec.ExitError); err != nil && !cut {
		t.Fatal(err)
	}
	return string(out)
}

// killAndStartLeaf kills pa's pncd and starts it again; r2 then has an LSP of the new one.
func (l *isisLab) killAndStartLeaf() *lab.Process {
	l.t.Helper()
	before := l.sequence("pa.00-00")
	l.kill("pa", "pncd")
	pncd := l.startAgain("pa")
	l.eventually("the sequence number is recovered", func() string {
		if after := l.sequence("pa.00-00"); after <= before {
			return fmt.Sprintf("%d after %d", after, before)
		}
		return ""
	})
	return pncd
}

// sequence is an LSP's sequence number in r2's database; 0 when it isn't there.
func (l *isisLab) sequence(lsp string) (n uint64) {
	l.t.Helper()
	text := l.vtysh("r2", "show isis database")
	if m := regexp.MustCompile(regexp.QuoteMeta(lsp) + `\s+\d+\s+0x([0-9a-f]{8})`).FindStringSubmatch(text); m != nil {
		fmt.Sscanf(m[1], "%x", &n)
	}
	return n
}
