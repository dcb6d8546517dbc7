package telemetry

var (
	descSenderReady     = desc("proxy_ready", "Whether this proxy can translate for a sender prefix now.", "context", "prefix")
	descSenderAnnounced = desc("proxy_announced", "Whether the capability of a sender prefix is to be announced: its state is announced or losing.", "context", "prefix")
	descSenderStates    = desc("proxy_prefixes", "Sender prefixes by where their announcement stands.", "state")
)

// senderStates are the states that an announcement can be in.
var senderStates = []string{"off", "held", "waiting", "suppressed", "announced", "losing"}

// Sender is one sender prefix that is announced with this node as the proxy.
type Sender struct {
	Context   string // the VPN; empty for the default one
	Prefix    string
	Ready     bool
	Announced bool
	State     string // off, held, waiting, suppressed, announced or losing
}

func (x *exporter) senders(list []Sender) {
	states := map[string]int{}
	for _, s := range list {
		x.gauge(descSenderReady, flag(s.Ready), s.Context, s.Prefix)
		x.gauge(descSenderAnnounced, flag(s.Announced), s.Context, s.Prefix)
		states[s.State]++
	}
	for _, s := range senderStates {
		x.gauge(descSenderStates, float64(states[s]), s)
	}
}
