import { createLink, type LinkComponent } from '@tanstack/react-router';
import type { AnchorHTMLAttributes, ReactNode, Ref } from 'react';
import { Skeleton } from './Page';
import './tile.css';

type TileProps = AnchorHTMLAttributes<HTMLAnchorElement> & {
  label: ReactNode;
  /** Undefined while it loads. */
  value: ReactNode | undefined;
  detail?: ReactNode;
  ref?: Ref<HTMLAnchorElement>;
};

function TileAnchor({ label, value, detail, ...props }: TileProps) {
  return (
    <a className="card tile" {...props}>
      <span className="tile-label">{label}</span>
      <span className="tile-value">{value ?? <Skeleton height={24} width={96} />}</span>
      <span className="tile-detail">
        {value === undefined ? <Skeleton height={14} width={140} /> : detail}
      </span>
    </a>
  );
}

/** A number that opens the rows behind it. */
export const Tile: LinkComponent<typeof TileAnchor> = createLink(TileAnchor);

/** A row of tiles. Tall ones have room for two lines of detail. */
export function Tiles({ children, isTall }: { children: ReactNode; isTall?: boolean }) {
  return <div className={`tiles ${isTall ? 'tiles-tall' : ''}`}>{children}</div>;
}
