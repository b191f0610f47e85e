package configs

// Exchange says how subdomains send their boundary regions to each other.
type Exchange struct {
	Scheme string `json:"scheme" yaml:"scheme"`                   // "auto", "baseline", "two-stream", "assisted", "graph", "fused" or "resident"
	Order  string `json:"order,omitempty" yaml:"order,omitempty"` // "left-right" or "pairwise"; "" for schemes without an order
	Path   string `json:"path" yaml:"path"`                       // "auto", "staged", "peer" or "direct"
}

func (r *reader) exchange() Exchange {
	e := Exchange{
		Scheme: r.word("exchange.scheme", Auto, "baseline", "two-stream", "assisted", "graph", "fused", "resident"),
		Order:  r.word("exchange.order", "left-right", "pairwise"),
		Path:   r.word("exchange.path", Auto, "staged", "peer", "direct"),
	}
	if s, _ := r.lookup("exchange.path"); e.Scheme == "baseline" && (e.Path == "peer" || e.Path == "direct") {
		r.refuse("exchange.path", s, "is not allowed: the scheme baseline goes through the host: auto or staged")
	}
	if e.Scheme == "baseline" || e.Scheme == "assisted" || e.Scheme == "graph" {
		e.Order = ""
	}
	return e
}
