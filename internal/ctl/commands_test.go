package ctl

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"time"

	"pncd/api"
	"pncd/api/apitest"
	pncv1 "pncd/api/pnc/v1"
	"pncd/internal/testwait"
	"pncd/internal/version"
	"pncd/proxyagent/evidence"
)

func TestCommandsThatChangeSayWhatTheyDid(t *testing.T) {
	b, env := sample(t)
	b.Node.SetChanges("bgp.neighbors[192.0.2.253]: added", "log.level: info -> debug")
	for _, tt := range []struct {
		args   string
		status int
		out    string // in the output; in the errors when the status is not 0
	}{
		{"disable", 0, "mechanism disabled\n"},
		{"disable", 0, "mechanism disabled (it was already)\n"},
		{"advertise 192.0.2.128/28 --next-hop 192.0.2.4", 1, "the mechanism is disabled: enable it first ('pncctl enable')"},
		{"enable", 0, "mechanism enabled\n"},
		{"enable", 0, "mechanism enabled (it was already)\n"},
		{"advertise 192.0.2.128/28 --proxy 192.0.2.3 --next-hop 192.0.2.4", 0, "192.0.2.128/28  originate  192.0.2.3  192.0.2.4  yes     api   -        -\n"},
		{"advertise 192.0.2.160/28 --next-hop 192.0.2.4 --lease 90s", 0, "yes     api   1m30s    -\n"},
		{"advertise 192.0.2.160/28 --next-hop 192.0.2.4 --lease 1ms", 2, "lease: 1ms is not between 1s and"},
		{"advertise 192.0.2.160/28", 2, "next_hop: required with mode originate"},
		{"advertise 192.0.2.176/28 --next-hop 192.0.2.4 --context blue", 0, "192.0.2.176/28  originate"},
		{"withdraw 192.0.2.176/28", 1, "was not advertised"},
		{"withdraw 192.0.2.176/28 --context blue", 0, "192.0.2.176/28 withdrawn in context blue\n"},
		{"advertise 192.0.2.144/28 --mode path", 0, "192.0.2.144/28  path  192.0.2.1"},
		{"advertise 192.0.2.144/28 --mode inline --next-hop 192.0.2.4", 2, "next_hop: only mode originate"},
		{"withdraw 192.0.2.128/28", 0, "192.0.2.128/28 withdrawn\n"},
		{"withdraw 192.0.2.128/28", 1, "was not advertised"},
		{"withdraw 198.51.100.0/24", 1, "originated by configuration"},
		{"reload", 0, "bgp.neighbors[192.0.2.253]: added\nlog.level: info -> debug\n"},
		{"log level debug", 0, "log level debug (was info)\n"},
		{"log level loud", 2, `level: "loud" is no log level`},
		{"refresh 192.0.2.251", 0, "192.0.2.251 asked for its routes again: ipv4-unicast, ipv6-unicast\n"},
		{"refresh 192.0.2.251 --out", 0, "192.0.2.251 gets our announcements again: ipv4-unicast, ipv6-unicast\n"},
		{"refresh 192.0.2.251 --both", 0, "192.0.2.251 asked for its routes, and gets our announcements again: ipv4"},
		{"refresh 192.0.2.251 --both --out", 2, "either --out or --both"},
		{"refresh 192.0.2.252", 1, "not established"},
		{"refresh 192.0.2.99", 1, "not a configured neighbour"},
		{"refresh x", 2, `"x" is not an IP address`},
		{"neighbors 192.0.2.99", 1, "not a configured neighbour"},
		{"flows 198.51.100.10 203.0.113.10 0x18c", 1, "no traffic of the flow"},
		{"nrp set 300 --context blue", 0, "300  -       -         -          blue     api  0s   8\n"},
		{"nrp set 300 --context blue --sender 192.0.2.9 --receiver 192.0.2.8 --source-qp 0x11", 1, "the map is full"},
		{"nrp set 100 --context red", 1, "nrp 100 is configured"},
		{"nrp set 0x64 --sender 198.51.100.10 --receiver 203.0.113.10 --source-qp 0x11", 0, "100  198.51.100.10  203.0.113.10  0x11       -        api  0s   9\n"},
		{"nrp set 1", 2, "give --context, or --sender"},
		{"nrp set 1 --context blue --source-qp 5", 2, "--source-qp goes together"},
		{"nrp set 1 --sender 192.0.2.9 --source-qp 5", 2, "--sender and --receiver go together"},
		{"nrp set x --context blue", 2, "no NRP Selector ID"},
		{"nrp set 4294967296 --context blue", 2, "no NRP Selector ID"},
		{"nrp list 1 2", 2, "unexpected argument \"2\""},
		{"nrp list 010", 2, "no NRP Selector ID"}, // octal to some
		{"nrp delete 300", 0, "nrp 300 deleted\n"},
		{"nrp delete 300", 1, "not mapped"},
		{"nrp delete 100", 1, "configured"},
		{"nrp delete 100 --sender 198.51.100.10 --receiver 203.0.113.10", 0, "nrp 100 deleted\n"},
		{"report eth2 --queue 3 --depth 5 --depth-unit cells", 0, "SENDER         RECEIVER      PORT   DEST-QP  CONTEXT  OUTCOME\n198.51.100.10  203.0.113.10  49443  0x18b    -        sent\n198.51.100.11  203.0.113.10  49444  0x18c    blue     paced\n"},
		{"report eth2 --queue 0", 0, "-       -         -     -        -        flow-unknown\n"},
		{"report Ethernet12 --sender 198.51.100.10 --receiver 203.0.113.10 --qp 0x18b --ce 7", 0, "198.51.100.10  203.0.113.10  -     0x18b    -        sent\n"},
		{"report Ethernet12", 2, "flow: is required: the flows of Ethernet12 are not known here"},
		{"report", 2, "report needs INTERFACE"},
		{"report eth2 --sender 192.0.2.1", 2, "--sender needs --receiver and --qp beside it"},
		{"report eth2 --sender 192.0.2.1 --receiver x --qp 1", 2, `--receiver: "x" is not an IP address`},
		{"report eth2 --sender 192.0.2.1 --receiver 192.0.2.2 --qp 0x1000000", 2, "--qp:"},
		{"report eth2 --sender 192.0.2.1 --receiver 192.0.2.2 --qp 1 --context blue", 2, "flow.source_port: is required in a context"},
		{"report eth2 --context blue", 2, "--port and --context are of a flow"},
		{"report eth2 --depth-unit miles", 2, `--depth-unit: "miles" is none of octets, packets, cells`},
		{"flows 198.51.100.10 203.0.113.10 0x18b --context red", 1, "no traffic of the flow"},
		{"enable -o json", 0, `"was_enabled": true`},
	} {
		t.Run(tt.args, func(t *testing.T) {
			status, out, errs := pncctl(t, env, strings.Fields(tt.args)...)
			text, other := out, errs
			if tt.status != 0 {
				text, other = errs, out
			}
			if status != tt.status || !strings.Contains(text, tt.out) || other != "" {
				t.Errorf("exit status %d, output %q, errors %q, want %d and %q", status, out, errs, tt.status, tt.out)
			}
		})
	}
	b.Reports.Fail(api.Precondition(api.ReasonDisabled, "the mechanism is disabled"))
	if status, _, errs := pncctl(t, env, "report", "eth2"); status != 1 || errs != "pncctl: the mechanism is disabled ('pncctl enable')\n" {
		t.Errorf("report while it is off: exit status %d, %q", status, errs)
	}
	b.Reports.Fail(api.TooMany("too fast"))
	if status, _, errs := pncctl(t, env, "report", "eth2"); status != 1 || errs != "pncctl: refused (rate-limited): too fast\n" {
		t.Errorf("report above the rate: exit status %d, %q", status, errs)
	}
	b.Reports.SetConfigured(false)
	if status, _, errs := pncctl(t, env, "report", "eth2"); status != 1 || errs != "pncctl: the configuration has no congestion_node.detect.api\n" {
		t.Errorf("report to one that takes none: exit status %d, %q", status, errs)
	}
	b.Node.Fail(api.Invalid("configuration", "line 3: unknown key"))
	if status, _, errs := pncctl(t, env, "reload"); status != 1 || errs != "pncctl: configuration: line 3: unknown key\n" {
		t.Errorf("reload of a bad file: exit status %d, %q, want 1: the command line is right", status, errs)
	}
	b.Node.Fail(nil)
	b.Node.SetChanges()
	if _, out, _ := pncctl(t, env, "reload"); out != "nothing changed\n" {
		t.Errorf("reload without a change says %q", out)
	}
}

func TestVersionShowsBothAndItsOwnWithoutADaemon(t *testing.T) {
	_, env := sample(t)
	own := version.Get().String()
	if status, out, _ := pncctl(t, env, "version"); status != 0 || out != "pncctl:  "+own+"\npncd:    v1.2.3\n" {
		t.Errorf("version: status %d, %q", status, out)
	}
	if status, out, errs := pncctl(t, nil, "version", "--client", "--socket", "/nonexistent/x"); status != 0 || out != "pncctl:  "+own+"\n" || errs != "" {
		t.Errorf("version --client: status %d, %q, %q", status, out, errs)
	}
	status, out, errs := pncctl(t, nil, "version", "--socket", "/nonexistent/x")
	if status != 1 || out != "pncctl:  "+own+"\n" || !strings.Contains(errs, "is pncd running?") {
		t.Errorf("version without a daemon: status %d, %q, %q, want our own version and exit status 1", status, out, errs)
	}
}

func TestFollowingPrintsHistoryAndEndsAtCount(t *testing.T) {
	_, env := sample(t)
	for _, tt := range []struct{ golden, args string }{
		{"watch-records", "watch records --history --count 4"},
		{"watch-records", "records --follow --count 4"},
		{"watch-records-filtered", "records -f --outcome proxy/malformed --count 1"},
		{"watch-capabilities", "watch capabilities --history --count 8"},
	} {
		t.Run(tt.args, func(t *testing.T) {
			status, out, errs := pncctl(t, env, strings.Fields(tt.args)...)
			if status != 0 || errs != "" {
				t.Errorf("exit status %d, errors %q", status, errs)
			}
			golden(t, tt.golden+".txt", out)
		})
	}
}

func TestFollowingInJSONIsOneObjectALine(t *testing.T) {
	_, env := sample(t)
	_, out, _ := pncctl(t, env, "watch", "records", "--history", "--count", "2", "-o", "json")
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[0], `{"record":{"sequence":"1"`) {
		t.Errorf("output = %q, want two lines of JSON", out)
	}
	_, out, _ = pncctl(t, env, "watch", "records", "--history", "--count", "2", "-o", "yaml")
	if strings.Count(out, "---\n") != 2 {
		t.Errorf("output = %q, want two YAML documents", out)
	}
}

func TestWatchFlowsShowsChangesAndWhatWasLost(t *testing.T) {
	b, env := sample(t)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var out, errs output
	done := make(chan int, 1)
	go func() {
		done <- Main(ctx, Env{
			Args: []string{"watch", "flows", "--sender", "198.51.100.10"}, Stdout: &out, Stderr: &errs,
			Getenv: func(k string) string { return env[k] }, Now: func() time.Time { return apitest.Now },
		})
	}()
	testwait.Until(t, "the watch to be open", func() bool { return b.Flows.Watchers() == 1 })
	b.Flows.Change(&pncv1.Flow{Sender: "198.51.100.10", Receiver: "203.0.113.10", DestinationQp: 0x18b, SourceQp: 0x137, State: pncv1.FlowState_FLOW_STATE_CLOSED, Detail: "DREQ"})
	testwait.Until(t, "the change to be shown", func() bool { return strings.Contains(out.String(), "0x137") })
	golden(t, "watch-flows.txt", out.String())
	cancel() // as Ctrl-C does
	if status := <-done; status != 0 || errs.String() != "" {
		t.Errorf("exit status %d, errors %q, want 0 and none after an interrupt", status, errs.String())
	}
}

func TestWatchThatThePeerEndsFails(t *testing.T) {
	b, env := sample(t)
	var out, errs output
	done := make(chan int, 1)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	go func() {
		done <- Main(ctx, Env{
			Args: []string{"watch", "flows"}, Stdout: &out, Stderr: &errs,
			Getenv: func(k string) string { return env[k] }, Now: func() time.Time { return apitest.Now },
		})
	}()
	testwait.Until(t, "the watch to be open", func() bool { return b.Flows.Watchers() == 1 })
	b.Flows.End()
	if status := <-done; status != 1 || !strings.Contains(errs.String(), "watch again") {
		t.Errorf("exit status %d, errors %q, want 1 and why", status, errs.String())
	}
}

func TestRecordsShowTheErrorOfTheSystem(t *testing.T) {
	b, env := sample(t)
	b.Records.Record(&evidence.Record{At: apitest.Now, Outcome: pncv1.Outcome_OUTCOME_SEND_ERROR, Err: "sendmmsg:\tno buffer\nspace"})
	_, out, _ := pncctl(t, env, "records", "--outcome", "congestion-node/send-error")
	if !strings.Contains(out, "sendmmsg: no buffer space") || strings.Count(out, "\n") != 2 {
		t.Errorf("output = %q, want the error on one line", out)
	}
}

func TestRecordsAreChosenByTheContextOfTheirFlow(t *testing.T) {
	b, env := sample(t)
	b.Records.Record(&evidence.Record{At: apitest.Now, Outcome: pncv1.Outcome_OUTCOME_NO_PROXY, Flow: evidence.Flow{Context: "blue", Sender: netip.MustParseAddr("192.0.2.77"), Receiver: netip.MustParseAddr("192.0.2.78")}})
	for flag, want := range map[string][2]bool{"--context=blue": {true, false}, "--context=": {false, true}, "--limit=100": {true, true}} {
		_, out, _ := pncctl(t, env, "records", flag)
		if got := [2]bool{strings.Contains(out, "192.0.2.77"), strings.Contains(out, "translated")}; got != want {
			t.Errorf("%s: in blue and in the default context %v, want %v\n%s", flag, got, want, out)
		}
	}
}

func TestRecordsShowTheSourceAndTheDepth(t *testing.T) {
	b, env := sample(t)
	for _, c := range []evidence.Congestion{
		{Source: "qdisc eth2", QueueDepth: 4000}, {Source: "api eth2 queue 3", QueueDepth: 1, DepthUnit: pncv1.QueueDepthUnit_QUEUE_DEPTH_UNIT_CELLS},
		{Source: "ce eth3", CECount: 7},
	} {
		b.Records.Record(&evidence.Record{At: apitest.Now, Outcome: pncv1.Outcome_OUTCOME_FLOW_UNKNOWN, Congestion: c})
	}
	_, out, _ := pncctl(t, env, "records", "--outcome", "flow-unknown")
	for _, want := range []string{"by qdisc eth2; 4000 octets in the queue\n", "by api eth2 queue 3; 1 cell in the queue\n", "7 CE by ce eth3\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("output = %q, want %q in it", out, want)
		}
	}
}

func TestFollowingEndsWhenUntilPasses(t *testing.T) {
	_, env := sample(t)
	until := apitest.Now.Add(300 * time.Millisecond).Format(time.RFC3339Nano)
	for _, args := range [][]string{{"records", "-f", "--until", until}, {"watch", "records", "--until", until}} {
		status, _, errs := pncctl(t, env, args...)
		if status != 0 || errs != "" {
			t.Errorf("%v: exit status %d, errors %q", args, status, errs)
		}
	}
}
