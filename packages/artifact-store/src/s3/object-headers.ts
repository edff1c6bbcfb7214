/** What every object of ours says of itself: private metadata, for whoever looks at the bucket without our database. */
export function objectHeaders(sha256: string) {
  return { ContentType: "application/octet-stream", Metadata: { sha256 } } as const;
}
