package ctl

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	pncv1 "pncd/api/pnc/v1"
)

func TestOfManySendersTheStatusListsThoseThatAreNotReady(t *testing.T) {
	a := &app{env: Env{Now: time.Now}}
	var list []*pncv1.SenderReadiness
	for i := range mostSenders {
		list = append(list, &pncv1.SenderReadiness{Prefix: fmt.Sprintf("10.0.%d.0/24", i), Ready: true, State: pncv1.ReadinessState_READINESS_STATE_ANNOUNCED})
	}
	show := func() string {
		var b bytes.Buffer
		if err := a.senderTable(&b, list); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	if out := show(); !strings.Contains(out, "10.0.7.0/24") || strings.Contains(out, "and ") {
		t.Errorf("as many as are listed:\n%s", out)
	}
	list = append(list, &pncv1.SenderReadiness{Prefix: "10.9.0.0/24"}, &pncv1.SenderReadiness{Prefix: "10.9.1.0/24", Ready: true, State: pncv1.ReadinessState_READINESS_STATE_WAITING})
	out := show()
	if strings.Contains(out, "10.0.7.0/24") || !strings.Contains(out, "10.9.0.0/24") || !strings.Contains(out, "10.9.1.0/24") || !strings.Contains(out, "and 50 that are ready and announced") {
		t.Errorf("more:\n%s", out)
	}
}

func TestTheMechanismIsOnOffOrStarting(t *testing.T) {
	for _, tc := range []struct {
		st   *pncv1.GetStatusResponse
		want string
	}{
		{&pncv1.GetStatusResponse{EnabledByConfig: true, Starting: true}, "starting"},
		{&pncv1.GetStatusResponse{EnabledByConfig: true, Enabled: true}, "enabled"},
		{&pncv1.GetStatusResponse{EnabledByConfig: true}, "disabled (the configuration says enabled)"},
	} {
		if got := mechanism(tc.st); got != tc.want {
			t.Errorf("%v: %q, want %q", tc.st, got, tc.want)
		}
	}
}
