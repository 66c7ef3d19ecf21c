package reliability

import (
	"sort"

	"github.com/softrnic/softrnic/wire"
)

// maxSendBursts bounds the memory of a SendLog. When it has as many, the oldest
// half becomes less exact.
const maxSendBursts = 4096

// A SendLog has the times at which packets were first sent. It records one entry
// for the packets that were sent together, so that it costs little while nothing
// is lost. Its zero value is empty.
type SendLog struct {
	bursts []burst // in the order of sending
	first  int     // index of the oldest entry in use
	serial uint64  // of the newest transmission, also of retransmissions
}

// A burst is the packets from the end of the burst before it to before end.
type burst struct {
	end    wire.PSN
	at     Time
	serial uint64
}

// Record records that the packets up to before end, which were not recorded
// before, were sent at now. Packets before una are forgotten.
func (l *SendLog) Record(una, end wire.PSN, now Time) {
	for l.first < len(l.bursts) && l.bursts[l.first].end.LessEq(una) {
		l.first++
	}
	l.serial++
	switch {
	case l.first == len(l.bursts):
		l.bursts, l.first = l.bursts[:0], 0
	case len(l.bursts) == cap(l.bursts) && l.first > len(l.bursts)/2:
		l.bursts, l.first = l.bursts[:copy(l.bursts, l.bursts[l.first:])], 0
	}
	if len(l.bursts)-l.first >= maxSendBursts {
		l.mergeOldest()
	}
	l.bursts = append(l.bursts, burst{end, now, l.serial})
}

// mergeOldest merges pairs in the older half of the bursts. The packets of the
// earlier burst count as sent with the later one, which delays their loss at most.
func (l *SendLog) mergeOldest() {
	rest := l.bursts[l.first+maxSendBursts/2:]
	for i := range maxSendBursts / 4 {
		l.bursts[l.first+i] = l.bursts[l.first+2*i+1]
	}
	n := l.first + maxSendBursts/4
	l.bursts = l.bursts[:n+copy(l.bursts[n:], rest)]
}

// sentAt returns the time and the serial number of the first transmission of p.
func (l *SendLog) sentAt(p wire.PSN) (at Time, serial uint64) {
	list := l.bursts[l.first:]
	i := sort.Search(len(list), func(i int) bool { return p.Less(list[i].end) })
	if i == len(list) {
		return 0, l.serial
	}
	return list[i].at, list[i].serial
}

// nextSerial returns the serial number of a retransmission.
func (l *SendLog) nextSerial() uint64 {
	l.serial++
	return l.serial
}
