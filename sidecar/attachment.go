package sidecar

import (
	"context"

	"go.uber.org/zap"

	"scopeward/proxy"
	"scopeward/sidecar/config"
	"scopeward/sidecar/launch"
	"scopeward/sidecar/router"
)

// attach builds everything that lives as long as this start of the router, and
// publishes last.
func (k *keeper) attach(ctx context.Context, link *router.Link) error {
	d, err := link.Describe(ctx)
	if err != nil {
		return err
	}
	pass, able, err := k.passes(ctx, link, d)
	if err != nil {
		return err
	}
	k.attribution.router(link)
	if err := k.launches.Attach(ctx, launchLink(link, d), k.server.Cut); err != nil {
		return err
	}
	incarnation := newIncarnation()
	k.server.Attach(proxy.Upstream{
		Addr: link.Addr(), Key: link.File.Key, DaemonID: link.File.DaemonID,
		DaemonVer: link.File.DaemonVer, Pass: pass,
	}, incarnation)
	ours := k.file
	ours.DaemonVer = link.File.DaemonVer
	if err := k.publication.publish(ctx, ours); err != nil {
		return err
	}
	k.setState(RouterState{
		Attached: true, PID: link.File.PID, Version: link.File.DaemonVer, Addr: link.Addr(), Pass: pass, Able: able,
		SpawnFeed: d.HasSpawnFeed(), Incarnation: incarnation,
	})
	k.log.Info("the router is there, our connection file is published",
		zap.String("file", k.publication.path), zap.String("router", link.Addr()),
		zap.Uint32("router_pid", link.File.PID), zap.String("router_version", link.File.DaemonVer),
		zap.String("incarnation", incarnation), zap.Bool("spawn_feed", d.HasSpawnFeed()))
	return nil
}

func launchLink(link *router.Link, d router.Description) launch.Link {
	l := launch.Link{Router: link, PID: link.File.PID}
	if d.HasSpawnFeed() {
		l.Subscribe = func(since router.Cursor) (launch.Feed, error) {
			f, err := link.SpawnSubscribe(since)
			if err != nil {
				return nil, err
			}
			return f, nil
		}
	}
	return l
}

// passes decides who serves scopes, and says so. able says that the router can.
func (k *keeper) passes(ctx context.Context, link *router.Link, d router.Description) (pass, able bool, err error) {
	able = d.AdvertisesScopes()
	if able && k.scopes == config.ScopesAuto {
		ops, err := link.ModuleOps(ctx)
		if err != nil {
			return false, false, err
		}
		able = router.ServesScopes(ops)
	}
	switch {
	case k.scopes == config.ScopesPass && !able:
		k.log.Warn("the router does not serve all of scopes/v1, and scopes is pass: nobody does")
		return true, able, nil
	case k.scopes == config.ScopesPass || k.scopes == config.ScopesAuto && able:
		k.log.Info("the router serves scopes itself: scope ops pass through unchanged", zap.String("scopes", string(k.scopes)))
		return true, able, nil
	}
	return false, able, nil
}

// again takes up a link that broke, when the same start of the router is still
// there. nil says that it is not.
func (k *keeper) again(ctx context.Context, gone *router.Link) *router.Link {
	file, link, err := k.find(ctx)
	if err != nil {
		k.log.Info("the router is gone", zap.String("why", absence(err)), zap.NamedError("link", gone.Err()))
		return nil
	}
	if !file.SameDaemon(gone.File) {
		k.log.Info("the router is gone, another has taken its place")
		link.Close()
		return nil
	}
	d, err := link.Describe(ctx)
	if err != nil {
		link.Close()
		return nil
	}
	k.launches.Relink(launchLink(link, d))
	k.log.Warn("the link to the router broke and was taken up again", zap.NamedError("why", gone.Err()))
	return link
}

// detach is everything that attach did, backwards: whoever would come now must
// not find us.
func (k *keeper) detach() {
	k.publication.withdraw()
	k.healer.hold()
	k.server.Detach()
	k.launches.Detach()
	k.setState(RouterState{Why: "it is gone"})
}
