package translate

import (
	"errors"
	"reflect"
	"regexp"
	"slices"
	"testing"

	"pncd/dataplane/tap/kernel"
)

func TestAttachmentsAreListedWhileTheyAreThere(t *testing.T) {
	p := newPlace(t)
	k, err := Open(Config{})
	if err != nil {
		t.Fatal(err)
	}
	var all []*Attachment
	for _, name := range []string{"va", "wa"} {
		if err := p.ns.Do(func() error {
			a, err := k.Attach(name, true)
			all = append(all, a)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	if got := k.Attachments(); len(got) != 2 || !slices.Contains(got, all[0]) || !slices.Contains(got, all[1]) {
		t.Errorf("two attached: %v", got)
	}
	for i, name := range []string{"va", "wa"} {
		o, err := all[i].Object()
		if ok, _ := regexp.MatchString(`^id [1-9]\d*, XDP in the (driver|stack) of `+name+` by link [1-9]\d*$`, o.Detail); !ok || o.Name != ProgramName || err != nil {
			t.Errorf("%+v, %v", o, err)
		}
	}
	maps, detail := k.Objects(), regexp.MustCompile(`^id [1-9]\d*, \w+, \d+ (entries|octets)$`)
	for _, o := range maps {
		if !detail.MatchString(o.Detail) {
			t.Errorf("%+v", o)
		}
	}
	if len(maps) != reflect.TypeFor[translateMaps]().NumField() {
		t.Errorf("%d maps: %+v", len(maps), maps)
	}
	for range 2 {
		if err := all[0].Close(); err != nil {
			t.Error(err)
		}
	}
	if got := k.Attachments(); !slices.Equal(got, all[1:]) {
		t.Errorf("one attached: %v", got)
	}
	if _, err := all[0].Object(); !errors.Is(err, ErrClosed) {
		t.Errorf("taken off: %v", err)
	}
	if err := errors.Join(all[1].Check(), all[1].link.Detach()); err != nil {
		t.Error(err)
	}
	if err := p.ns.Do(all[1].Check); !errors.Is(err, kernel.ErrDetached) {
		t.Errorf("somebody took the program off: %v", err)
	}
	if err := k.Close(); err != nil || len(k.Objects()) != 0 || len(k.Attachments()) != 0 {
		t.Errorf("closed: %v, %v", err, k.Attachments())
	}
}
