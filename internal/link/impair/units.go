package impair

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
)

// Percent is a probability in percent, from 0 to 100. It is not a fraction, so
// that 0.1 is formatted as 0.1%.
type Percent float64

// String returns the percentage as parsed, such as "0.1%".
func (p Percent) String() string {
	return strconv.FormatFloat(float64(p), 'f', -1, 64) + "%"
}

// valid reports whether p is a probability.
func (p Percent) valid() bool { return p >= 0 && p <= 100 } // false for NaN

// threshold returns the number of 32-bit values for which the event happens.
func (p Percent) threshold() uint64 { return uint64(math.Round(float64(p) / 100 * (1 << 32))) }

// splitQuantity cuts a quantity such as "1.5ms" into its number and its unit.
func splitQuantity(word string) (number, unit string) {
	i := strings.IndexFunc(word, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
	if i < 0 {
		return word, ""
	}
	return word[:i], word[i:]
}

func parsePercent(word string) (Percent, error) {
	number, unit := splitQuantity(word)
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || unit != "%" || !Percent(v).valid() {
		return 0, errors.New("want a percentage from 0% to 100%, such as 0.1%")
	}
	return Percent(v), nil
}

// A unit is a unit of time or rate. Lists are ordered by size, largest first;
// the first name of a size is used for formatting.
type unit struct {
	name string
	size int64
}

var timeUnits = []unit{
	{"s", int64(time.Second)}, {"sec", int64(time.Second)}, {"secs", int64(time.Second)},
	{"ms", int64(time.Millisecond)}, {"msec", int64(time.Millisecond)}, {"msecs", int64(time.Millisecond)},
	{"us", int64(time.Microsecond)}, {"usec", int64(time.Microsecond)}, {"usecs", int64(time.Microsecond)},
	{"ns", 1},
}

var rateUnits = []unit{
	{"tbit", 1e12}, {"gbit", 1e9}, {"mbit", 1e6}, {"kbit", 1e3}, {"bit", 1},
}

// parseQuantity parses a number with one of the units, up to max.
func parseQuantity(word string, units []unit, max int64) (int64, bool) {
	number, name := splitQuantity(word)
	v, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, false
	}
	for _, u := range units {
		if u.name == name {
			v = math.Round(v * float64(u.size))
			return int64(v), v <= float64(max)
		}
	}
	return 0, false
}

// formatQuantity formats n in the largest unit that leaves an integer.
func formatQuantity(n int64, units []unit) string {
	for _, u := range units {
		if n%u.size == 0 && n != 0 {
			return strconv.FormatInt(n/u.size, 10) + u.name
		}
	}
	return "0" + units[len(units)-1].name
}

// maxTime bounds delays.
const maxTime = time.Hour

func parseTime(word string) (time.Duration, error) {
	v, ok := parseQuantity(word, timeUnits, int64(maxTime))
	if !ok {
		return 0, errors.New("want a time of at most an hour with its unit (ns, us, ms, s), such as 0.5ms")
	}
	return time.Duration(v), nil
}

func formatTime(d time.Duration) string { return formatQuantity(int64(d), timeUnits) }

// maxRate bounds rates: 10 terabit per second.
const maxRate = 10e12

func parseRate(word string) (int64, error) {
	v, ok := parseQuantity(word, rateUnits, maxRate)
	if !ok || v == 0 {
		return 0, errors.New("want bits per second, 1bit to 10tbit, with a unit (bit, kbit, mbit, gbit, tbit), such as 1gbit")
	}
	return v, nil
}

func formatRate(r int64) string { return formatQuantity(r, rateUnits) }
