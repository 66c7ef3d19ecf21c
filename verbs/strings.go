package verbs

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// A valueText is the text of one value of an enumeration: the name of the
// constant in libibverbs without its prefix, and a description.
type valueText struct{ name, description string }

// lookupText looks v up in a table indexed by value.
func lookupText[T ~uint8](table []valueText, v T, typ string) valueText {
	if int(v) < len(table) && table[v].name != "" {
		return table[v]
	}
	return unknownText(typ, strconv.FormatUint(uint64(v), 10))
}

// flagText returns the text of a set of flags from a table with one entry per
// bit. Names are joined by "|" and descriptions by "; ". A single flag costs no
// allocation.
func flagText[T ~uint8 | ~uint32](table []valueText, set T, typ string) valueText {
	if set == 0 {
		return valueText{"0", "nothing"}
	}
	var names, meanings []string
	var strange uint64
	for rest := uint64(set); rest != 0; rest &= rest - 1 {
		bit := bits.TrailingZeros64(rest)
		if bit >= len(table) || table[bit].name == "" {
			strange |= 1 << bit
			continue
		}
		if uint64(set) == 1<<bit {
			return table[bit]
		}
		names = append(names, table[bit].name)
		meanings = append(meanings, table[bit].description)
	}
	if strange != 0 {
		w := unknownText(typ, "0x"+strconv.FormatUint(strange, 16))
		names = append(names, w.name)
		meanings = append(meanings, w.description)
	}
	return valueText{strings.Join(names, "|"), strings.Join(meanings, "; ")}
}

func unknownText(typ, value string) valueText {
	name := typ + "(" + value + ")"
	return valueText{name, name + " is not a value that the verbs define"}
}

// Describe describes a value of an enumeration of this package in words (ibv_wc_status_str,
// ibv_event_type_str), or each flag of a set. String is the short name. For values of other types
// the result is "".
func Describe(v fmt.Stringer) string {
	if d, ok := v.(interface{ descriptionText() string }); ok {
		return d.descriptionText()
	}
	return ""
}
