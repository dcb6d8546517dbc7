package ctl

import (
	"fmt"
	"io"
	"strings"

	pncv1 "pncd/api/pnc/v1"
)

// mostSenders is how many sender prefixes the status lists; of more, only those that are not both ready
// and announced.
const mostSenders = 50

// advertising sums up what is announced of the sender prefixes.
func advertising(st *pncv1.GetStatusResponse) string {
	if st.GetAdvertise() == "" {
		return ""
	}
	announced, ready := 0, 0
	for _, s := range st.GetSenders() {
		if announcedState(s.GetState()) {
			announced++
		}
		if s.GetReady() {
			ready++
		}
	}
	return fmt.Sprintf("%s; of %d sender prefixes %d ready, %d announced", st.GetAdvertise(), len(st.GetSenders()), ready, announced)
}

func announcedState(s pncv1.ReadinessState) bool {
	return s == pncv1.ReadinessState_READINESS_STATE_ANNOUNCED || s == pncv1.ReadinessState_READINESS_STATE_LOSING
}

func (a *app) senderTable(w io.Writer, list []*pncv1.SenderReadiness) error {
	if len(list) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	g := newGrid(w, "SENDERS", "CONTEXT", "STATE", "FOR", "ENDS-IN", "READY", "SEEN-FROM", "SEEN-TOWARDS", "LACKS")
	hidden := 0
	for _, s := range list {
		if len(list) > mostSenders && s.GetReady() && announcedState(s.GetState()) {
			hidden++
			continue
		}
		lacks := make([]string, 0, len(s.GetFailures())+1)
		for _, f := range s.GetFailures() {
			lacks = append(lacks, enum(f.GetReason())+": "+f.GetDetail())
		}
		if s.GetState() == pncv1.ReadinessState_READINESS_STATE_SUPPRESSED {
			lacks = append(lacks, fmt.Sprintf("damped: penalty %d", s.GetPenalty()))
		}
		state := "off"
		if s.GetState() != pncv1.ReadinessState_READINESS_STATE_UNSPECIFIED {
			state = enum(s.GetState())
		}
		g.row(s.GetPrefix(), s.GetContext(), state, a.age(s.GetSince()), a.left(s.GetUntil()), yesNo(s.GetReady()), a.age(s.GetSeenFrom()), a.age(s.GetSeenTowards()), strings.Join(lacks, "; "))
	}
	if err := g.flush(); err != nil || hidden == 0 {
		return err
	}
	_, err := fmt.Fprintf(w, "and %d that are ready and announced (-o json shows all)\n", hidden)
	return err
}
