package readiness

import "time"

// Meter gives the share that was lost within a window, from counters that only grow. Its zero value is
// ready for use.
type Meter struct{ samples []sample }

// samplesPerWindow bounds what a meter keeps, however often it is asked.
const samplesPerWindow = 64

type sample struct {
	at         time.Time
	good, lost uint64
}

// Add takes the counters at a time, and gives what was added to them within the window before: from the
// last sample that is not younger than the window, else from the first. Counters that went back begin
// anew.
func (m *Meter) Add(now time.Time, window time.Duration, good, lost uint64) (addedGood, addedLost uint64) {
	if n := len(m.samples); n > 0 && (good < m.samples[n-1].good || lost < m.samples[n-1].lost) {
		m.samples = m.samples[:0]
	}
	first := 0
	for first+1 < len(m.samples) && !m.samples[first+1].at.After(now.Add(-window)) {
		first++
	}
	m.samples = append(m.samples[:0], m.samples[first:]...)
	if n := len(m.samples); n == 0 || now.Sub(m.samples[n-1].at) >= window/samplesPerWindow {
		m.samples = append(m.samples, sample{now, good, lost})
	}
	return good - m.samples[0].good, lost - m.samples[0].lost
}

// Exceeds says whether lost of good + lost is more than a share in percent.
func Exceeds(good, lost uint64, percent int) bool {
	return float64(lost)*100 > float64(good+lost)*float64(percent)
}

// Traffic says which direction of a prefix's traffic was not seen within a time; zero asks for none. from
// and towards are when it was seen last; zero: never.
func Traffic(now time.Time, within time.Duration, from, towards time.Time) []Failure {
	if within == 0 {
		return nil
	}
	missing := func(t time.Time) bool { return t.IsZero() || now.Sub(t) > within }
	switch noFrom, noTowards := missing(from), missing(towards); {
	case noFrom && noTowards:
		return []Failure{{NoTraffic, "no traffic of the senders was seen within " + within.String()}}
	case noFrom:
		return []Failure{{NoTraffic, "no traffic from the senders was seen within " + within.String()}}
	case noTowards:
		return []Failure{{NoTraffic, "no traffic towards the senders was seen within " + within.String()}}
	}
	return nil
}
