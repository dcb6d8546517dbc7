package evidence

import (
	"fmt"
	"testing"

	pncv1 "pncd/api/pnc/v1"
)

func TestHostChangesAreCountedExactlyAndTheNewestAreKept(t *testing.T) {
	r, err := NewRecorder(Config{Capacity: 8})
	if err != nil {
		t.Fatal(err)
	}
	const more = 5
	for i := range hostChangesKept + more {
		c := HostChange{Kind: pncv1.HostObjectKind_HOST_OBJECT_KIND_VETH, Name: fmt.Sprint(i)}
		if i%2 == 1 {
			c.Kind, c.Err = pncv1.HostObjectKind_HOST_OBJECT_KIND_NFT_TABLE, "no such device"
		}
		r.HostChanged(c)
	}
	kept, overwritten := r.HostChanges()
	if len(kept) != hostChangesKept || overwritten != more || kept[0].Name != fmt.Sprint(more) || kept[0].Sequence != more+1 {
		t.Errorf("%d kept from %+v on, %d overwritten", len(kept), kept[0], overwritten)
	}
	if got := fmt.Sprint(r.HostChangeCounts()); got != "[{HOST_OBJECT_KIND_NFT_TABLE 0 514} {HOST_OBJECT_KIND_VETH 515 0}]" {
		t.Error(got)
	}
	if r.Made() != 0 {
		t.Errorf("%d records of events and notifications", r.Made())
	}
}
