package lru

import (
	"slices"
	"testing"
)

func keys(t *Table[int, string]) []int {
	var all []int
	t.All(func(k int, _ *string) bool { all = append(all, k); return true })
	return all
}

func TestLeastRecentlyUsedMakesRoom(t *testing.T) {
	tab := New[int, string](3)
	for _, k := range []int{1, 2, 3} {
		*tab.Put(k) = "v"
	}
	if tab.Get(1) == nil {
		t.Fatal("1 is not there")
	}
	if v := tab.Put(4); *v != "" {
		t.Errorf("a new entry holds the value %q of the one it replaced", *v)
	}
	if got, want := keys(tab), []int{4, 1, 3}; !slices.Equal(got, want) {
		t.Errorf("entries %v, want %v", got, want)
	}
	if tab.Get(2) != nil {
		t.Error("2 was least recently used and is still there")
	}
	if tab.Len() != 3 || tab.Evicted() != 1 {
		t.Errorf("Len %d, Evicted %d; want 3, 1", tab.Len(), tab.Evicted())
	}
}

func TestTableOfOneEntry(t *testing.T) {
	tab := New[int, string](0)
	for k := range 10 {
		tab.Put(k)
		if tab.Get(k) == nil || tab.Len() != 1 {
			t.Fatalf("key %d: Len %d", k, tab.Len())
		}
	}
}

func TestAllStopsWhenTold(t *testing.T) {
	tab := New[int, string](3)
	tab.Put(1)
	tab.Put(2)
	n := 0
	tab.All(func(int, *string) bool { n++; return false })
	if n != 1 {
		t.Errorf("%d calls, want 1", n)
	}
}

func TestFullTableDoesNotAllocate(t *testing.T) {
	tab := New[int, string](128)
	for k := range 1024 {
		tab.Put(k)
	}
	k := 1024
	if allocs := testing.AllocsPerRun(10_000, func() {
		tab.Put(k)
		tab.Get(k - 1)
		k++
	}); allocs != 0 {
		t.Errorf("%v allocations for each new key", allocs)
	}
}
