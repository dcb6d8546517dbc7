package boundary

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// printer turns the expressions of a rule into nft's words. It knows those that this package makes; any other
// one shows as what it is, so that a rule of somebody else is never taken for ours.
type printer struct {
	words  []string
	loaded string // what is in the register
}

func (p *printer) say(format string, args ...any) {
	p.words = append(p.words, fmt.Sprintf(format, args...))
}

// add prints one expression; next is the one after it.
func (p *printer) add(e, next expr.Any) {
	switch e := e.(type) {
	case *expr.Meta:
		p.loaded = metaName(e)
	case *expr.Payload:
		p.loaded = payloadName(e)
	case *expr.Cmp:
		p.compare(e, next)
	case *expr.Lookup:
		if e.Invert {
			p.say("%s != @%s", p.loaded, e.SetName)
		} else {
			p.say("%s @%s", p.loaded, e.SetName)
		}
	case *expr.Dynset:
		p.dynset(e)
	case *expr.Limit:
		p.words = append(p.words, limitText(e))
	case *expr.Objref:
		if e.Type == unix.NFT_OBJECT_COUNTER {
			p.say("counter name %q", e.Name)
		} else {
			p.say("object %d %q", e.Type, e.Name)
		}
	case *expr.Verdict:
		p.verdict(e)
	default:
		p.say("<%s>", strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T", e), "*expr.")))
	}
}

func metaName(e *expr.Meta) string {
	names := map[expr.MetaKey]string{
		expr.MetaKeyL4PROTO: "meta l4proto", expr.MetaKeyNFPROTO: "meta nfproto", expr.MetaKeyIIFNAME: "iifname", expr.MetaKeyOIFNAME: "oifname",
	}
	if n, ok := names[e.Key]; ok && !e.SourceRegister {
		return n
	}
	return fmt.Sprintf("<meta %d>", e.Key)
}

func payloadName(e *expr.Payload) string {
	if e.OperationType == expr.PayloadWrite {
		return "<payload write>"
	}
	type at struct {
		base        expr.PayloadBase
		offset, len uint32
	}
	names := map[at]string{
		{expr.PayloadBaseTransportHeader, 2, 2}: "udp dport",
		{expr.PayloadBaseNetworkHeader, 12, 4}:  "ip saddr", {expr.PayloadBaseNetworkHeader, 16, 4}: "ip daddr",
		{expr.PayloadBaseNetworkHeader, 8, 1}: "ip ttl", {expr.PayloadBaseNetworkHeader, 7, 1}: "ip6 hoplimit",
		{expr.PayloadBaseNetworkHeader, 8, 16}: "ip6 saddr", {expr.PayloadBaseNetworkHeader, 24, 16}: "ip6 daddr",
	}
	if n, ok := names[at{e.Base, e.Offset, e.Len}]; ok {
		return n
	}
	base := map[expr.PayloadBase]string{expr.PayloadBaseLLHeader: "ll", expr.PayloadBaseNetworkHeader: "nh", expr.PayloadBaseTransportHeader: "th"}[e.Base]
	return fmt.Sprintf("@%s,%d,%d", base, 8*e.Offset, 8*e.Len)
}

// compare prints a comparison. One that only makes sure that the next field is there is left out, as nft does.
func (p *printer) compare(e *expr.Cmp, next expr.Any) {
	if field, ok := next.(*expr.Payload); ok && e.Op == expr.CmpOpEq && len(e.Data) > 0 {
		name := payloadName(field)
		switch {
		case p.loaded == "meta l4proto" && e.Data[0] == unix.IPPROTO_UDP && name == "udp dport",
			p.loaded == "meta nfproto" && e.Data[0] == unix.NFPROTO_IPV4 && strings.HasPrefix(name, "ip "),
			p.loaded == "meta nfproto" && e.Data[0] == unix.NFPROTO_IPV6 && strings.HasPrefix(name, "ip6 "):
			return
		}
	}
	op := map[expr.CmpOp]string{expr.CmpOpEq: "", expr.CmpOpNeq: "!= ", expr.CmpOpLt: "< ", expr.CmpOpLte: "<= ", expr.CmpOpGt: "> ", expr.CmpOpGte: ">= "}[e.Op]
	p.say("%s %s%s", p.loaded, op, valueText(p.loaded, e.Data))
}

func valueText(field string, data []byte) string {
	switch {
	case field == "iifname" || field == "oifname":
		name, _, _ := bytes.Cut(data, []byte{0})
		return fmt.Sprintf("%q", name)
	case (field == "ip ttl" || field == "ip6 hoplimit") && len(data) == 1:
		return fmt.Sprint(data[0])
	case field == "udp dport" && len(data) == 2:
		return fmt.Sprint(binary.BigEndian.Uint16(data))
	}
	return fmt.Sprintf("0x%x", data)
}

func (p *printer) dynset(e *expr.Dynset) {
	op, ok := map[uint32]string{unix.NFT_DYNSET_OP_ADD: "add", unix.NFT_DYNSET_OP_UPDATE: "update"}[e.Operation]
	if !ok || e.Invert || e.SrcRegData != 0 || e.Timeout != 0 {
		op = "<dynset>"
	}
	var inner printer
	for _, x := range e.Exprs {
		inner.add(x, nil)
	}
	p.say("%s @%s { %s }", op, e.SetName, strings.Join(append([]string{p.loaded}, inner.words...), " "))
}

func limitText(e *expr.Limit) string {
	over, unit := "", map[expr.LimitTime]string{expr.LimitTimeSecond: "second", expr.LimitTimeMinute: "minute", expr.LimitTimeHour: "hour", expr.LimitTimeDay: "day", expr.LimitTimeWeek: "week"}[e.Unit]
	if e.Over {
		over = "over "
	}
	if e.Type != expr.LimitTypePkts {
		return fmt.Sprintf("limit rate %s%d bytes/%s burst %d bytes", over, e.Rate, unit, e.Burst)
	}
	return fmt.Sprintf("limit rate %s%d/%s burst %d packets", over, e.Rate, unit, e.Burst)
}

func (p *printer) verdict(e *expr.Verdict) {
	switch e.Kind {
	case expr.VerdictAccept:
		p.say("accept")
	case expr.VerdictDrop:
		p.say("drop")
	case expr.VerdictReturn:
		p.say("return")
	case expr.VerdictGoto:
		p.say("goto %s", e.Chain)
	case expr.VerdictJump:
		p.say("jump %s", e.Chain)
	default:
		p.say("<verdict %d>", e.Kind)
	}
}
