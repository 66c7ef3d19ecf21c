package impair

// A lossProcess decides for each packet whether it is lost.
type lossProcess interface {
	isLost(r *random) bool
}

func (l Random) percentages() []Percent { return []Percent{l.P, l.Correlation} }

func (l Random) newProcess() lossProcess {
	c := newChance(Chance(l))
	return &randomLoss{c}
}

type randomLoss struct{ chance }

func (l *randomLoss) isLost(r *random) bool { return l.happens(r) }

func (l GEModel) percentages() []Percent { return []Percent{l.P, l.R, l.Bad, l.Good} }

func (l GEModel) newProcess() lossProcess { return &gilbertElliott{model: l} }

// gilbertElliott decides the loss by the state before a packet and changes the
// state with the same packet: two draws each, in the order of sch_netem.c.
type gilbertElliott struct {
	model GEModel
	bad   bool
}

func (g *gilbertElliott) isLost(r *random) bool {
	leave, loss := g.model.P, g.model.Good
	if g.bad {
		leave, loss = g.model.R, g.model.Bad
	}
	if r.happens(leave) {
		g.bad = !g.bad
	}
	return r.happens(loss)
}

func (l FourState) percentages() []Percent {
	return []Percent{l.P13, l.P31, l.P32, l.P23, l.P14}
}

func (l FourState) newProcess() lossProcess { return &fourState{model: l, state: gapReceived} }

// The states of FourState, with netem's numbers.
const (
	gapReceived   = 1
	burstReceived = 2
	burstLost     = 3
	gapLost       = 4
)

type fourState struct {
	model FourState
	state int
}

// isLost makes one step of the chain. As in sch_netem.c, a packet that leaves
// the burst for the gap, or for a reception within the burst, is received.
func (f *fourState) isLost(r *random) bool {
	m := &f.model
	draw := uint64(r.next())
	switch f.state {
	case gapReceived:
		if draw < m.P14.threshold() {
			f.state = gapLost
		} else if draw < m.P14.threshold()+m.P13.threshold() {
			f.state = burstLost
		}
	case burstReceived:
		if draw < m.P23.threshold() {
			f.state = burstLost
		}
	case burstLost:
		if draw < m.P32.threshold() {
			f.state = burstReceived
		} else if draw < m.P32.threshold()+m.P31.threshold() {
			f.state = gapReceived
		}
	case gapLost:
		f.state = gapReceived
	}
	return f.state == burstLost || f.state == gapLost
}
