package kernel

import (
	"math"
	"testing"
	"time"
)

// pairsSince is when the words of these tests count from.
var pairsSince = time.Unix(1_700_000_000, 0)

func TestPairComesBackWithinTheBoundsOfItsFields(t *testing.T) {
	for _, p := range []Pair{
		{SourceQP: 0, PKey: 0, Source: 1, Votes: 0},
		{SourceQP: 0xFFFFFF, PKey: 0xFFFF, Source: 3, Votes: pairVotesMax},
		{SourceQP: 0x800001, PKey: 0x8001, Source: 2, Votes: pairVotesMax + 1},
		{SourceQP: 1, PKey: 1, Source: 3, Votes: math.MaxUint32},
	} {
		p.LearnedAt = pairsSince
		w, err := p.word(pairsSince)
		if err != nil || w == 0 {
			t.Errorf("%+v: %#x, %v", p, w, err)
		}
		want := p
		want.Votes = min(p.Votes, pairVotesMax)
		for _, seed := range []learnHashSeed{{}, {After: math.MaxUint64}, {After: 1}} {
			if got := w.of(seed, []uint64{1, 2}).pair(pairsSince); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		}
	}
	for _, p := range []Pair{{SourceQP: 1 << 24, Source: 1}, {SourceQP: math.MaxUint32, Source: 1}, {Source: 0}, {Source: 4}, {Source: math.MaxUint8}} {
		if w, err := p.word(pairsSince); err == nil || w != 0 {
			t.Errorf("%+v: %#x, %v", p, w, err)
		}
	}
}

// Nothing is learned later than it is said to be, but for the second that a reader's ticks may take, nor by more than the
// docstring says before.
func TestTimeOfAPairComesBackAsExactAsDocumented(t *testing.T) {
	const year = 365 * 24 * time.Hour
	back := func(at time.Time) time.Time {
		p := Pair{Source: 1, LearnedAt: at}
		w, err := p.word(pairsSince)
		if err != nil {
			t.Fatal(err)
		}
		return w.pair(pairsSince).LearnedAt
	}
	for _, after := range []time.Duration{
		0, 1, 58 * time.Second, time.Minute, 127 * time.Minute, 128 * time.Minute, 129 * time.Minute, 255 * time.Minute, 256 * time.Minute,
		24 * time.Hour, 30*24*time.Hour + 7, year, 3 * year, 127 << 14 * time.Minute,
	} {
		at := pairsSince.Add(after)
		got := back(at)
		if late := got.Sub(at); late > time.Second || -late > max(time.Minute, after/64) {
			t.Errorf("%v after the start: %v off", after, late)
		}
		if again := back(got.Add(-67 * time.Millisecond)); !again.Equal(got) {
			t.Errorf("%v after the start: kept again, it is %v off", after, again.Sub(got))
		}
	}
	for _, at := range []time.Time{{}, pairsSince.Add(-1), pairsSince.Add(-year), time.Unix(math.MinInt32, 0)} {
		if got := back(at); !got.Equal(pairsSince) {
			t.Errorf("%v: %v", at, got)
		}
	}
	for _, at := range []time.Time{pairsSince.Add(5 * year), pairsSince.Add(math.MaxInt64), time.Unix(1<<40, 0)} {
		if got := back(at); got.Sub(pairsSince) != 127<<14*time.Minute {
			t.Errorf("%v: %v", at, got)
		}
	}
}

func TestEachCodeOfMinutesIsTheOtherWayRoundAgain(t *testing.T) {
	was := uint64(0)
	for code := range uint16(1 << 10) {
		n := minutesOf(code)
		if minuteCode(n) != code || code > 0 && (n <= was || minuteCode(n-1) != code-1) {
			t.Errorf("code %d: %d minutes, after %d", code, n, was)
		}
		was = n
	}
}

// The check depends on every bit of the key and of the secret.
func TestCheckOfAPairIsOfItsKey(t *testing.T) {
	base := []uint64{0x0A0000010A000002, 0xC350_001_001234}
	const tries = 64
	for i := range base {
		same := 0
		for bit := range tries {
			key := append([]uint64(nil), base...)
			key[i] ^= 1 << bit
			if pairWord(1).of(learnHashSeed{After: 5}, key) == pairWord(1).of(learnHashSeed{After: 5}, base) {
				same++
			}
		}
		if same > 4 { // by chance, one in 256
			t.Errorf("word %d: %d of %d bits change nothing", i, same, tries)
		}
	}
	same := 0
	for bit := range tries {
		if pairWord(1).of(learnHashSeed{After: 1 << bit}, base) == pairWord(1).of(learnHashSeed{}, base) {
			same++
		}
	}
	if same > 4 {
		t.Errorf("%d bits of the secret change nothing", same)
	}
}
