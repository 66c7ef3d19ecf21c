package coll

import (
	"fmt"
	"strings"
)

// Choices are algorithms by name for some of the collectives. The default algorithm
// replaces one that cannot do a call.
type Choices map[Collective]string

// ParseChoices parses a list such as "allreduce=ring,bcast=chain".
func ParseChoices(list string) (Choices, error) {
	ch := Choices{}
	for item := range strings.SplitSeq(list, ",") {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		collective, name, ok := strings.Cut(item, "=")
		if !ok {
			return nil, fmt.Errorf("%w: malformed choice %q: want COLLECTIVE=ALGORITHM", ErrAlgorithm, item)
		}
		if err := ch.set(collective, name); err != nil {
			return nil, err
		}
	}
	return ch, nil
}

// NewChoices returns the choices of algorithms by the names of collectives.
func NewChoices(names map[string]string) (Choices, error) {
	ch := Choices{}
	for collective, name := range names {
		if err := ch.set(collective, name); err != nil {
			return nil, err
		}
	}
	return ch, nil
}

// set adds a choice by its names.
func (ch Choices) set(collective, name string) error {
	c, err := ParseCollective(collective)
	if err == nil {
		_, err = findAlgorithm(c, name)
	}
	if err == nil {
		ch[c] = name
	}
	return err
}

// String returns the list in the form of ParseChoices.
func (ch Choices) String() string {
	var items []string
	for c := range numCollectives {
		if name, ok := ch[c]; ok {
			items = append(items, c.String()+"="+name)
		}
	}
	return strings.Join(items, ",")
}

func (ch Choices) algorithmFor(collective Collective, c Case) (*Algorithm, error) {
	if name, ok := ch[collective]; ok {
		a, err := findAlgorithm(collective, name)
		if err != nil {
			return nil, err
		}
		if a.supports(c) {
			return a, nil
		}
	}
	return decideAlgorithm(collective, c), nil
}
