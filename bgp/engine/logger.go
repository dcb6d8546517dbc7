package engine

import (
	"fmt"
	"strings"
	"sync/atomic"

	gobgplog "github.com/osrg/gobgp/v3/pkg/log"
	"github.com/osrg/gobgp/v3/pkg/packet/bgp"
	"github.com/sirupsen/logrus"
)

// logger is GoBGP's logger over ours. It never ends the process: GoBGP asks for Fatal and Panic in
// places where the node can go on. It also hands each message to note, because some of what an
// operator wants to know (why a connection fails, that routes are kept through a graceful restart) is
// in GoBGP's log and nowhere else.
type logger struct {
	out    logrus.FieldLogger
	note   func(msg string, f gobgplog.Fields)
	name   func(string) string // gives the peer's own address for the one that GoBGP knows it by
	panics atomic.Uint64
}

var _ gobgplog.Logger = (*logger)(nil)

func newLogger(out logrus.FieldLogger, note func(string, gobgplog.Fields), name func(string) string) *logger {
	return &logger{out: out, note: note, name: name}
}

func (l *logger) with(f gobgplog.Fields) logrus.FieldLogger {
	out := make(logrus.Fields, len(f))
	for k, v := range f {
		if text, ok := v.(string); ok {
			v = l.name(text)
		}
		out[k] = v
	}
	return l.out.WithFields(out)
}

func (l *logger) Panic(msg string, f gobgplog.Fields) {
	l.panics.Add(1)
	l.with(f).WithField("gobgp-level", "panic").Error(msg)
}

func (l *logger) Fatal(msg string, f gobgplog.Fields) {
	l.panics.Add(1)
	l.with(f).WithField("gobgp-level", "fatal").Error(msg)
}

func (l *logger) Error(msg string, f gobgplog.Fields) {
	l.note(msg, f)
	l.with(f).Error(msg)
}

func (l *logger) Warn(msg string, f gobgplog.Fields) {
	l.note(msg, f)
	l.with(f).Warn(msg)
}

func (l *logger) Info(msg string, f gobgplog.Fields) {
	l.note(msg, f)
	l.with(f).Info(msg)
}

func (l *logger) Debug(msg string, f gobgplog.Fields) {
	l.note(msg, f)
	if l.debugging() {
		l.with(f).Debug(msg)
	}
}

// debugging avoids to format what would not be written: GoBGP logs every UPDATE at this level.
func (l *logger) debugging() bool {
	switch out := l.out.(type) {
	case *logrus.Logger:
		return out.IsLevelEnabled(logrus.DebugLevel)
	case *logrus.Entry:
		return out.Logger.IsLevelEnabled(logrus.DebugLevel)
	}
	return true
}

// GetLevel says debug only where that is written: GoBGP asks before it puts together what would be said for each
// path. All that is noted it says without asking.
func (l *logger) GetLevel() gobgplog.LogLevel {
	if l.debugging() {
		return gobgplog.DebugLevel
	}
	return gobgplog.InfoLevel
}

// SetLevel does nothing: the level is the program's, not GoBGP's.
func (l *logger) SetLevel(gobgplog.LogLevel) {}

// noteLog picks the last error of a session and its graceful restart out of GoBGP's log.
func (e *GoBGP) noteLog(msg string, f gobgplog.Fields) {
	var text string
	switch msg {
	case "Peer Down":
		text = fmt.Sprintf("session down: %v", f["Reason"])
	case "sent notification", "received notification":
		text = notification(msg, f)
	case "hold timer expired":
		text = msg
	case "cannot set TTL for peer":
		text = fmt.Sprintf("%s: %v", msg, f["Error"])
	case "prefix limit reached":
		text = fmt.Sprintf("more than max_prefixes of %v; down until the configuration of the neighbour changes", f["Family"])
	case "peer graceful restart", "failed to set md5":
	default:
		return
	}
	key, _ := f["Key"].(string)
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.peers[e.inside.real(key)]
	switch {
	case p == nil, p.final:
	case msg == "failed to set md5":
		p.keyless = true
	case msg == "peer graceful restart":
		p.restarting = true
	case p.faulty, madeByRelay(p.lastError, msg, f):
		// GoBGP sees a NOTIFICATION that the relay made.
	case msg == "Peer Down" && p.noted:
		// A notification was noted during this session; it says more.
	default:
		p.lastError = text
		p.noted = true
		p.final = msg == "prefix limit reached"
	}
}

// madeByRelay reports whether GoBGP tells of the Cease with which the relay ends its side of a session that
// ends for what the peer sent. The fault, which is the last error by then, can be known before GoBGP's
// event that the session was established, so that the state of the session doesn't tell.
func madeByRelay(lastError, msg string, f gobgplog.Fields) bool {
	const reset, why = bgp.BGP_ERROR_SUB_HARD_RESET, "sent notification: "
	if !strings.HasPrefix(lastError, why) {
		return false
	}
	if msg == "Peer Down" {
		reason := fmt.Sprint(f["Reason"])
		return reason == "hard-reset" || reason == "notification-received "+bgp.NewNotificationErrorCode(bgp.BGP_ERROR_CEASE, reset).String()
	}
	code, _ := f["Code"].(uint8)
	subcode, _ := f["Subcode"].(uint8)
	data, _ := f["Data"].([]byte)
	return msg == "received notification" && code == bgp.BGP_ERROR_CEASE && subcode == reset && len(data) == 2 &&
		strings.HasPrefix(lastError, why+bgp.NewNotificationErrorCode(data[0], data[1]).String())
}

func notification(msg string, f gobgplog.Fields) string {
	code, hasCode := f["Code"].(uint8)
	subcode, hasSubcode := f["Subcode"].(uint8)
	if hasCode && hasSubcode {
		text := msg + ": " + bgp.NewNotificationErrorCode(code, subcode).String()
		if why, _ := f["Communicated-Reason"].(string); why != "" {
			text += ": " + why
		}
		return text
	}
	return fmt.Sprintf("%s: %v", msg, f["Data"])
}
