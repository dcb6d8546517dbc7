package api

import (
	"context"

	pncv1 "pncd/api/pnc/v1"
)

// ISIS is the IS-IS system.
type ISIS interface {
	// Isis reads the system.
	Isis(ctx context.Context) (*pncv1.GetIsisResponse, error)
	// Lsps lists the LSPs that the request asks for, by level and ID.
	Lsps(ctx context.Context, r *pncv1.ListLspsRequest) ([]*pncv1.IsisLsp, error)
}

// isisService answers pnc.v1.IsisService.
type isisService struct {
	pncv1.UnimplementedIsisServiceServer
	isis ISIS // nil: not configured
}

func (s isisService) configured() error {
	if s.isis == nil {
		return Precondition(ReasonNotConfigured, "IS-IS is not configured: the configuration has no isis section")
	}
	return nil
}

// GetIsis implements pncv1.IsisServiceServer.
func (s isisService) GetIsis(ctx context.Context, _ *pncv1.GetIsisRequest) (*pncv1.GetIsisResponse, error) {
	if err := s.configured(); err != nil {
		return nil, err
	}
	return s.isis.Isis(ctx)
}

// ListLsps implements pncv1.IsisServiceServer.
func (s isisService) ListLsps(ctx context.Context, r *pncv1.ListLspsRequest) (*pncv1.ListLspsResponse, error) {
	if err := s.configured(); err != nil {
		return nil, err
	}
	if r.GetLevel() > 2 {
		return nil, Invalid("level", "%d is neither 1 nor 2, nor 0 for both", r.GetLevel())
	}
	lsps, err := s.isis.Lsps(ctx, r)
	return &pncv1.ListLspsResponse{Lsps: lsps}, err
}
