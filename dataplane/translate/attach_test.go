package translate

import (
	"slices"
	"testing"
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
	for range 2 {
		if err := all[0].Close(); err != nil {
			t.Error(err)
		}
	}
	if got := k.Attachments(); !slices.Equal(got, all[1:]) {
		t.Errorf("one attached: %v", got)
	}
	if err := k.Close(); err != nil || len(k.Attachments()) != 0 {
		t.Errorf("closed: %v, %v", err, k.Attachments())
	}
}
