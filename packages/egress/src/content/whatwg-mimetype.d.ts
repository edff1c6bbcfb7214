declare module "whatwg-mimetype" {
  export class MIMEType {
    static parse(text: string): MIMEType | null;
    readonly type: string;
    readonly subtype: string;
    readonly essence: string;
    readonly parameters: { get(name: string): string | undefined };
  }
  export function computedMIMEType(resource: Uint8Array, options?: { contentTypeHeader?: string }): MIMEType;
}
