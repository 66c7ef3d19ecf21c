package nas

// Random is the state of NPB's generator of random numbers, the linear
// congruential x' = a*x mod 2^46 with a = 5^13. It is a value, so that it stays in
// a register:
//
//	x := nas.Random(seed)
//	x = x.Next()
//	u := x.Float64()
type Random uint64

const (
	multiplier = 1220703125 // 5^13
	modulus    = 1 << 46
)

// Next is the state after one more draw. The product is right modulo 2^64, and so
// modulo 2^46.
func (x Random) Next() Random { return x * multiplier % modulus }

// Float64 is the number that was drawn, in (0, 1). Processors convert signed numbers
// in one step.
func (x Random) Float64() float64 { return float64(int64(x)) * (1.0 / modulus) }

// Skip is the state after n draws, of which it does about 2 log n.
func (x Random) Skip(n uint64) Random {
	for a := Random(multiplier); n > 0; n >>= 1 {
		if n&1 != 0 {
			x = x * a % modulus
		}
		a = a * a % modulus
	}
	return x
}
